import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { deleteOldAuditEntries, insertAuditEntries, listAuditEntries, type ListAuditQuery, type NewAuditEntry } from '../db/audit.ts'
import { batchCalls } from '../db/batching.ts'
import type { Database } from '../db/tables.ts'
import type { AuditAction } from '../schema/audit.ts'
import { networkOf } from '../schema/network.ts'
import type { Actor } from '../schema/policy.ts'
import { clientInfoOf } from './client-info.ts'
import { purgeRegularly, ROWS_A_PURGE } from './purge.ts'
import { createSampler } from './sampler.ts'

const PURGE_SECONDS = 3600

declare module 'fastify' {
  interface FastifyInstance {
    usherAudit: ReturnType<typeof createAudit>
  }
}

/** What happened. Where the request has an actor, it is that actor's doing, to their own account, in their session, unless this says otherwise. */
export interface AuditDetails {
  action: AuditAction
  actorId?: string | undefined
  /** To whose account. */
  userId?: string | undefined
  sessionId?: string | undefined
}

function createAudit (app: FastifyInstance) {
  const { usherDatabase: { db }, usherOptions: { auditSeconds } } = app
  const write = batchCalls((entries: NewAuditEntry[]) => insertAuditEntries(db, entries))

  // Apart from each other, so that a flood of one kind hides none of the others. Users have a share of their own.
  const samplers = new Map<string, (key: string) => boolean>()
  const pending = new Set<Promise<void>>()
  app.addHook('onClose', async () => { await Promise.all(pending) })

  /** Writes to the account log, within a transaction where one is given: what was answered stands in it. */
  async function add (request: FastifyRequest, entry: AuditDetails, trx?: Database): Promise<void> {
    const row = entryOf(request, entry)
    await (trx ? insertAuditEntries(trx, [row]) : write(row))
  }

  return {
    add,

    /** Who asks, and from where, for an entry that is written along with what it is about. */
    contextOf: (request: FastifyRequest) => entryOf(request, {}),

    /** The entry of what happened, to be written in the transaction that does it. */
    entry: (request: FastifyRequest, note: AuditDetails): NewAuditEntry => entryOf(request, note),

    /**
     * Notes, after the answer, that a request is refused with 403 or 429. A flood is not to become a flood of entries or
     * statements: of the refusals of a user, or of a network without a user, one a minute is written, and of each kind at
     * most 100 a minute on each node. Never throws: what fails is logged.
     */
    addRefusal (request: FastifyRequest, status: 403 | 429, actor: Actor | null): void {
      const action = status === 403 ? 'access.denied' : 'access.throttled'
      const kind = `${action} ${actor === null ? 'network' : 'user'}`
      const isNew = samplers.get(kind) ?? createSampler()
      samplers.set(kind, isNew)
      if (!isNew(actor?.id ?? networkOf(request.ip))) return
      const noted = add(request, { action, actorId: actor?.id, sessionId: actor?.sessionId })
        .catch((err) => app.log.warn({ err, action }, 'An entry of the account log could not be written'))
        .finally(() => pending.delete(noted))
      pending.add(noted)
    },

    list: (query: ListAuditQuery) => listAuditEntries(db, query),

    /** Deletes what is too old: how many entries. */
    purge: (): Promise<number> => deleteOldAuditEntries(db, { seconds: auditSeconds, limit: ROWS_A_PURGE }),
  }
}

function entryOf<Note extends Partial<AuditDetails>> (request: FastifyRequest, note: Note) {
  const { actor } = request
  const { actorId = actor?.id, userId = actorId, sessionId = actor?.sessionId } = note
  return {
    ...note,
    actorId: actorId ?? null,
    userId: userId ?? null,
    sessionId: sessionId ?? null,
    ...clientInfoOf(request),
  }
}

/** The account log: who did what and when, kept for a time. */
export default fp(async function audit (app) {
  app.decorate('usherAudit', createAudit(app))
  purgeRegularly(app, 'the account log', PURGE_SECONDS, app.usherAudit.purge)
}, { name: 'usher-audit', dependencies: ['usher-database'] })

import fp from 'fastify-plugin'
import { NIL } from 'uuid'
import {
  deleteOldAuditEntries, entrySources, findFrequentEntries, insertAuditEntries, listAuditEntries, readLastLogins,
  thinAuditEntries,
  thinEntriesAboutNobody, type AuditEntryRow, type ListAuditQuery, type NewAuditEntry,
} from '../../db/audit/audit.ts'
import { storeFailedLogins } from '../../db/audit/failed-logins.ts'
import { batchCalls } from '../../db/batching/batching.ts'
import type { ClientInfo } from '../../db/access/sessions.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Page } from '../../db/tables/page.ts'
import { forOwner, type AuditAction } from '../../schema/audit/audit.ts'
import { widestNetworkOf } from '../../schema/http/network.ts'
import type { Actor } from '../../schema/options/policy.ts'
import type { Caller } from '../access/caller.ts'
import { coreOf, type Core } from '../core.ts'
import { createInTurn } from '../support/in-turn.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'
import { repeatRegularly } from '../support/repeat.ts'
import { createSampler } from '../support/sampler.ts'

const PURGE_SECONDS = 3600
const THIN_SECONDS = 60
const FAILED_LOGINS_SECONDS = 30
// How many entries about one user with one action are kept of 24 hours.
const MAX_ENTRIES_PER_DAY = 1000
// How many about nobody.
const ABOUT_NOBODY = { perNetwork: 1000, total: 10_000 }

declare module 'fastify' {
  interface FastifyInstance {
    usherAudit: Audit
  }
}

/** Who did something, and from where: a `Caller`. */
interface Origin extends ClientInfo { readonly actor: Actor | null }

/**
 * What an entry records. If there is an actor, the ids default to that actor, the actor's own account and the actor's
 * session.
 */
export interface AuditDetails {
  action: AuditAction
  actorId?: string | undefined
  /** The user whose account is affected. */
  userId?: string | undefined
  sessionId?: string | undefined
  organizationId?: string | undefined
}

/** A list of entries as it is requested. */
export interface AuditListRequest extends Omit<ListAuditQuery, 'userId'> {
  /** The id of the user whom the entries are about. */
  user?: string | undefined
}

export type Audit = ReturnType<typeof createAudit>

function createAudit (
  { lifecycle, database: { db }, telemetry: { batch, metrics }, options: { auditSeconds, deadlines } }: Core
) {
  const { log } = lifecycle
  const help = 'Entries of the account log that were dropped because one user or network had too many'
  const dropped = metrics.counter('usher_audit_dropped_total', help)
  let newest: string = NIL
  const write = batchCalls((entries: NewAuditEntry[]) => insertAuditEntries(db, entries), {
    timeoutMs: deadlines.batch, telemetry: batch('audit.create'),
  })

  // A user may have many entries, so the reads of one must not take the connections of others.
  const reads = createInTurn({ timeoutMs: deadlines.write })

  // Each kind has its own sampler, so that a flood of one kind does not hide entries of another. Requests with and
  // without a user are different kinds.
  const samplers = new Map<string, (key: string) => boolean>()
  const pending = new Set<Promise<void>>()
  lifecycle.addHook('onClose', async () => { await Promise.all(pending) })

  /**
   * Writes an entry to the account log, in the transaction `trx` if it is passed. Resolves when the entry is written,
   * so a handler that awaits it before its response records everything it reports.
   */
  async function add (caller: Origin, entry: AuditDetails, trx?: Database): Promise<void> {
    const row = entryOf(caller, entry)
    await (trx ? insertAuditEntries(trx, [row]) : write(row))
  }

  function addSample (caller: Origin, details: AuditDetails, kind: 'user' | 'network', key: string): void {
    const name = `${details.action} ${kind}`
    const isNew = samplers.get(name) ?? createSampler()
    samplers.set(name, isNew)
    if (!isNew(key)) return
    const written = add(caller, details)
      .catch((err) => log.warn({ err, ...details }, 'An entry of the account log could not be written'))
      .finally(() => pending.delete(written))
    pending.add(written)
  }

  async function deleteAll (deleteSome: () => Promise<number>): Promise<number> {
    let entries = 0
    for (let count = PURGE_BATCH_SIZE; count === PURGE_BATCH_SIZE; entries += count) count = await deleteSome()
    dropped.add(entries)
    return entries
  }

  return {
    add,

    /**
     * Returns who does something and from where, for an entry that is written together with the change it describes.
     */
    contextOf: (caller: Origin) => entryOf(caller, {}),

    /** Returns an entry, to be written in the transaction of the change that it describes. */
    entry: (caller: Origin, details: AuditDetails): NewAuditEntry => entryOf(caller, details),

    /**
     * Records, without delaying the response, that a request is rejected with 403 or 429. A flood of requests must not
     * become a flood of entries or statements: a user, or a network without a user, gets one entry per minute, and each
     * kind of rejection at most 100 per minute on each node. Never throws: failures are logged.
     */
    addRejection (caller: Origin, status: 403 | 429): void {
      const { actor, address } = caller
      const action = status === 403 ? 'access.denied' : 'access.throttled'
      addSample(caller, { action }, actor === null ? 'network' : 'user', actor?.id ?? widestNetworkOf(address))
    },

    /**
     * Records, without delaying the response, that an actor reads a private upload of another user: one entry a minute
     * for the same two users, and at most 100 a minute on each node. Never throws: failures are logged.
     */
    addRead (caller: Origin, userId: string): void {
      addSample(caller, { action: 'upload.read', userId }, 'user', `${caller.actor?.id} ${userId}`)
    },

    /**
     * Bounds the entries about each user, and those about nobody, so that nobody can fill the disk. Of those with the
     * same action within 24 hours, the first and the last remain.
     */
    async thin (): Promise<number> {
      const limit = PURGE_BATCH_SIZE
      const found = await findFrequentEntries(db, newest)
      newest = found.newest
      for (const kind of found.kinds) {
        const entries = await deleteAll(() => thinAuditEntries(db, kind, { keep: MAX_ENTRIES_PER_DAY, limit }))
        if (entries > 0) {
          log.warn(
            { ...kind, entries }, 'Entries of the account log were dropped, because one user has too many in a day'
          )
        }
      }
      if (!found.isAnyAboutNobody) return 0
      for (const source of entrySources) {
        const entries = await deleteAll(() => thinEntriesAboutNobody(db, source, { ...ABOUT_NOBODY, limit }))
        if (entries > 0) {
          log.warn({ entries }, 'Entries of the account log about nobody were dropped, because there are too many in a day')
        }
      }
      return 0
    },

    /** Stores the events about the failed logins of the last minutes, if they have consumers. */
    storeFailedLogins: (): Promise<void> => storeFailedLogins(db),

    /**
     * Returns a page of the entries about a user, by default about the caller, or of all for whoever may read all. The
     * other lists of the caller wait meanwhile. Throws `Unauthenticated`, `Forbidden`, `InvalidToken`, and `Overloaded`
     * if they take too long.
     */
    async list (caller: Caller, { user, ...query }: AuditListRequest): Promise<Page<AuditEntryRow>> {
      const { id } = caller.getActor()
      const seesAll = caller.allows('audit:read')
      const userId = user?.toLowerCase() ?? (seesAll ? undefined : id)
      caller.authorize('audit:read', { ownerId: userId })
      const { rows, next } = await reads.run(id, () => listAuditEntries(db, { ...query, userId }))
      await caller.confirm()
      return { rows: seesAll ? rows : rows.map((entry) => forOwner(entry)), next }
    },

    /**
     * Returns when users have logged in last, by their ids, as far as the log goes back and the caller may read it.
     * Throws `InvalidToken`.
     */
    async lastLogins (caller: Caller, userIds: readonly string[]): Promise<ReadonlyMap<string, Date>> {
      const found = await readLastLogins(db, userIds.filter((id) => caller.allows('audit:read', { ownerId: id })))
      await caller.confirm()
      return found
    },

    /**
     * Deletes at most `PURGE_BATCH_SIZE` entries that are older than `auditSeconds`. Returns the number of deleted
     * entries.
     */
    purge: (): Promise<number> => deleteOldAuditEntries(db, { seconds: auditSeconds, limit: PURGE_BATCH_SIZE }),
  }
}

function entryOf<Details extends Partial<AuditDetails>> ({ actor, address, userAgent }: Origin, details: Details) {
  const { actorId = actor?.id, userId = actorId, sessionId = actor?.sessionId } = details
  return {
    ...details,
    actorId: actorId ?? null,
    userId: userId ?? null,
    sessionId: sessionId ?? null,
    keyId: actor?.keyId ?? null,
    address,
    userAgent,
  }
}

/** Keeps the account log: who did what to which account and when. Entries are deleted after `auditSeconds`. */
export default fp(async function audit (app) {
  app.decorate('usherAudit', createAudit(coreOf(app)))
  purgeRegularly(app, 'account log', PURGE_SECONDS, app.usherAudit.purge)
  purgeRegularly(app, 'frequent entries of the account log', THIN_SECONDS, app.usherAudit.thin)
  const failure = 'Events about failed logins could not be stored'
  repeatRegularly(app, { seconds: FAILED_LOGINS_SECONDS, failure }, async () => {
    await app.usherAudit.storeFailedLogins()
    return false
  })
}, { name: 'usher-audit', dependencies: ['usher-options', 'usher-telemetry', 'usher-database'] })

import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { insertAuditEntries, type AuditContext } from '../../db/audit.ts'
import { channelOf } from '../../db/driver/channel.ts'
import { deleteEndedSessions, deleteExpiredSessions, listEndedSessions } from '../../db/ended-sessions.ts'
import type { Client } from '../../db/batching.ts'
import {
  deleteSession, deleteSessionsOf, findSession, findSessionOwner, insertSession, listSessionsOf, rotateSession,
  type EndContext, type NewSession, type ClientInfo, type SessionRow,
} from '../../db/sessions.ts'
import type { UserRow } from '../../db/tables.ts'
import { purgeRegularly, ROWS_A_PURGE } from '../purge.ts'
import { createSecrets, hashSecret, isGenuine, writeSessionCookie, type SessionCookie } from './cookie-value.ts'
import { longestLifeOf } from './tokens.ts'

const PURGE_SECONDS = 60

declare module 'fastify' {
  interface FastifyInstance {
    usherSessions: ReturnType<typeof createSessions>
  }
}

/** A session as its user gets it: what the cookie shall be, and until when. */
export interface OpenSession { id: string, cookie: string, expiresAt: Date }

function createSessions (app: FastifyInstance) {
  const { usherDatabase: { db, read, notifications }, usherOptions } = app
  // The sessions that ended while a token of theirs may live, and when to forget each.
  const ended = new Map<string, number>()
  // Who wants to know when a session ends.
  const watchers = new Map<string, Set<() => void>>()
  const tokenSeconds = longestLifeOf(usherOptions)

  notifications.listen(channelOf(usherOptions.schema, 'session_ended'), (id) => remember(id), reload)

  function remember (id: string, secondsAgo = 0): void {
    for (const [known, forgetAt] of ended) {
      if (forgetAt > performance.now()) break
      ended.delete(known)
    }
    const forgetAt = performance.now() + (tokenSeconds - secondsAgo) * 1000
    if (forgetAt > (ended.get(id) ?? 0)) ended.set(id, forgetAt)
    for (const tell of watchers.get(id) ?? []) tell()
    watchers.delete(id)
  }

  // Whatever was missed while the connection was down.
  async function reload (): Promise<void> {
    for (const { id, age } of await listEndedSessions(db, tokenSeconds)) remember(id, age)
  }

  /** Refuses sessions that a write of this node ended, from now on: the notification is still on its way. */
  function markEnded (ids: readonly string[]): void {
    for (const id of ids) remember(id)
  }

  return {
    /**
     * Opens a session, writes that to the account log, and tells the role that its user has by now. The session of a
     * cookie that it replaces ends. Throws `InvalidCredentials` for a user who is gone, or has another password by now.
     */
    async start ({ replaced, ...opening }: Pick<NewSession, 'userId' | 'passwordHash'> & ClientInfo & { replaced?: SessionCookie | undefined }) {
      const { secret, rotationKey } = createSecrets()
      const { id, role, expiresAt, replacedId } = await insertSession(db, {
        ...opening,
        secretHash: hashSecret(secret),
        rotationKey,
        replaced: replaced && { id: replaced.id, secretHash: hashSecret(replaced.secret) },
      }, usherOptions)
      if (replacedId !== null) markEnded([replacedId])
      return { id, role, expiresAt, cookie: writeSessionCookie({ id, secret, rotations: 0 }, rotationKey) }
    },

    /**
     * Rotates a session's cookie. All who send the same one get the same next one, for as long as the grace lasts: so
     * two tabs both go on, and an answer that was lost is had again. After that the session ends, on every node. The
     * user is read anew. `undefined` where there is no such session, or the cookie is not genuine. A session that this
     * node knows to have ended has, whatever the database says: after a failover to a replica that lags behind, it may
     * still have the row.
     */
    async refresh (cookie: SessionCookie, origin: ClientInfo): Promise<OpenSession & { user: UserRow } | undefined> {
      const { id, secret } = cookie
      if (ended.has(id)) return undefined
      const find = () => findSession(db, { id, secretHash: hashSecret(secret) })
      const found = await find()
      if (!found || !isGenuine(cookie, found.rotationKey)) return undefined
      const { user, rotationKey, recentRotations } = found
      const open = (rotations: number, expiresAt: Date) => ({ id, user, expiresAt, cookie: writeSessionCookie({ id, secret, rotations }, rotationKey) })

      const age = found.rotations - cookie.rotations
      // Rotated away longer ago than the grace: somebody has stolen it, or the one that came after it.
      if (age > recentRotations) {
        await end({ id }, { action: 'session.refresh-reuse', actorId: null, ...origin })
        return undefined
      }
      if (age > 0) return open(found.rotations, found.expiresAt)
      const expiresAt = await rotateSession(db, { id, rotations: found.rotations, ...origin }, usherOptions)
      if (expiresAt) return open(found.rotations + 1, expiresAt)
      // Somebody was faster: by a refresh, whose cookie this one gets too, or by ending it.
      const rotated = await find()
      return rotated && open(rotated.rotations, rotated.expiresAt)
    },

    end,

    /**
     * Ends the sessions of a user on every node, but for one if that is given. Each is written to the account log, in
     * the same transaction.
     *
     * @param confirm runs before they end, and throws if they must not
     */
    async endAll (userId: string, but: string, origin: AuditContext, confirm: () => Promise<void>): Promise<void> {
      markEnded(await db.transaction().execute(async (trx) => {
        const ids = await deleteSessionsOf(trx, userId, but)
        await insertAuditEntries(trx, ids.map((sessionId) => ({ ...origin, action: 'session.end', userId, sessionId })))
        await confirm()
        return ids
      }))
    },

    /** The sessions of a user that have neither ended nor expired, newest first. */
    list: (userId: string): Promise<SessionRow[]> => listSessionsOf(db, userId),

    /** Whose a session is; `undefined` where it is nobody's, or has expired. */
    ownerOf: (id: string): Promise<string | undefined> => findSessionOwner(db, id),

    noteEnded: markEnded,

    /**
     * Whether a session has not ended, for a client that may go. A node that hears the database's notifications knows;
     * one that has lost touch asks. Throws `DatabaseUnavailable` where it cannot be known.
     */
    isLive: (id: string, client?: Client): boolean | Promise<boolean> =>
      !ended.has(id) && (notifications.connected || read.liveSession(id, client).then((live) => live !== undefined && !ended.has(id))),

    /**
     * Calls back when a live session ends, wherever, until the function that it returns is called. A node that has lost touch
     * with the database's notifications knows of it when it hears them again.
     */
    watch (id: string, over: () => void): () => void {
      const watching = watchers.get(id) ?? new Set()
      watchers.set(id, watching.add(over))
      return () => {
        watching.delete(over)
        if (watching.size === 0) watchers.delete(id)
      }
    },

    /** Deletes at most so many expired sessions. Returns the number of sessions. */
    deleteExpired: (limit: number): Promise<number> => deleteExpiredSessions(db, limit),

    /** Deletes the memory of sessions of which no token can speak any more, likewise. */
    deleteEnded: (limit: number): Promise<number> => deleteEndedSessions(db, tokenSeconds, limit),
  }

  /**
   * Ends a session on every node, by its id, or by a cookie it has or had, and writes that to the account log, in one
   * statement. A session that has ended is left as it is.
   */
  async function end ({ id, secret }: { id: string, secret?: string }, note: EndContext): Promise<void> {
    const endedId = await deleteSession(db, { id, ...secret !== undefined && { secretHash: hashSecret(secret) } }, note)
    if (endedId !== undefined) markEnded([endedId])
  }
}

/** Sessions, and the knowledge of which have ended (contract 4). */
export default fp(async function sessions (app) {
  const sessions = createSessions(app)
  app.decorate('usherSessions', sessions)
  purgeRegularly(app, 'expired sessions', PURGE_SECONDS, () => sessions.deleteExpired(ROWS_A_PURGE))
  purgeRegularly(app, 'ended sessions', PURGE_SECONDS, () => sessions.deleteEnded(ROWS_A_PURGE))
}, { name: 'usher-sessions', dependencies: ['usher-database'] })

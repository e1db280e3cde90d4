import { insertAuditEntries, type AuditContext } from '../../db/audit/audit.ts'
import { channelOf } from '../../db/driver/channel.ts'
import {
  deleteEndedSessions, deleteExpiredSessions, deleteSession, deleteSessionsOf, listEndedSessions, type EndContext,
} from '../../db/access/ended-sessions.ts'
import { areLive, type TokenIds } from '../../db/access/live-sessions.ts'
import { findLiveTokens, type TokenKey, type WriterToken } from '../../db/access/live-tokens.ts'
import { endedOf, repairAccount } from '../../db/sign-in/repairs.ts'
import { batchCalls, type Client } from '../../db/batching/batching.ts'
import {
  findConsoleSession, findSession, findSessionOfToken, findSessionOwner, insertSession, listSessionsOf, rotateSession,
  type Authentication, type ClientInfo, type Lifetime, type NewSession, type SessionOfToken, type SessionRow,
} from '../../db/access/sessions.ts'
import type { Confirmer } from '../../db/driver/write-in-time.ts'
import type { Database, UserRow } from '../../db/tables/index.ts'
import { lockUser } from '../../db/users/users.ts'
import type { Role } from '../../schema/users/users.ts'
import { DatabaseUnavailable, UsherError } from '../../schema/http/errors.ts'
import type { Core } from '../core.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'
import { isGenuine, writeConsoleCookie, writeSessionCookie, type ConsoleCookie, type SessionCookie } from './cookies.ts'
import { consoleSecret, createSecrets, hashSecret } from './secrets.ts'
import type { SigningKeys } from './signing-keys.ts'
import { longestLifeOf } from './token-lifetime.ts'

const PURGE_SECONDS = 60
// How long a session of the console lives (contract 18.3).
const CONSOLE_SECONDS = 3600

const lifetimeOfConsole = ({ sessionSeconds, sessionIdleSeconds }: Lifetime): Lifetime => ({
  sessionSeconds: Math.min(sessionSeconds, CONSOLE_SECONDS),
  sessionIdleSeconds: Math.min(sessionIdleSeconds, CONSOLE_SECONDS),
})

export type Sessions = ReturnType<typeof createSessions>

interface Dependencies extends Core {
  signingKeys: SigningKeys
}

type TokenToCheck = Omit<WriterToken, 'expires'>

/** A session as its user gets it: the value of the cookie, and when the session expires. */
export interface OpenSession extends Authentication { id: string, cookie: string, expiresAt: Date }

/** The session that a cookie is of, with its user as stored now. */
export interface CookieSession extends Authentication { sessionId: string, user: UserRow, expiresAt: Date }

/** Opens, refreshes and ends sessions, and knows which have ended (contract 4). */
export function createSessions (
  { lifecycle, database: { db, notifications }, telemetry: { batch, metrics }, signingKeys, options }: Dependencies
) {
  // Ended sessions whose tokens may not have expired, and when to forget each.
  const ended = new Map<string, number>()
  // The callbacks for the end of each session.
  const watchers = new Map<string, Set<() => void>>()
  // How often this node has read what ended while it received no notifications.
  let generation = 0
  const tokenSeconds = longestLifeOf(options)
  const timeoutMs = options.deadlines.batch
  const readLiveTokens = batchCalls(
    (keys: TokenKey[]) => findLiveTokens(db, keys), { timeoutMs, telemetry: batch('sessions.check') }
  )
  const readLiveToken = async ({ id, kid, membershipId = '' }: TokenToCheck, client?: Client): Promise<boolean> =>
    await readLiveTokens(`${id} ${kid} ${membershipId}`, client) === true
  const readSession = batchCalls((ids: string[]) => areLive(db, ids), { timeoutMs })
  const revocations = metrics.counter(
    'usher_revocations_total', 'Sessions, memberships and API keys of which this node has learned that they have ended'
  )
  metrics.gauge(
    'usher_revoked_sessions', 'Ended sessions whose tokens may not have expired yet', () => ended.size,
    { combine: 'max' }
  )

  notifications.listen(channelOf(options.schema, 'session_ended'), (id) => record(id), reload)

  function record (id: string, secondsAgo = 0): void {
    for (const [known, forgetAt] of ended) {
      if (forgetAt > performance.now()) break
      ended.delete(known)
    }
    const forgetAt = performance.now() + (tokenSeconds - secondsAgo) * 1000
    if (!ended.has(id)) revocations.add()
    if (forgetAt > (ended.get(id) ?? 0)) ended.set(id, forgetAt)
    for (const notify of watchers.get(id) ?? []) notify()
    watchers.delete(id)
  }

  // Reads what was missed while the connection was lost.
  async function reload (): Promise<void> {
    generation++
    for (const { id, age } of await listEndedSessions(db, tokenSeconds)) record(id, age)
  }

  /**
   * Rejects what this node has ended, sessions, memberships or API keys, from now on, since the notification has not
   * arrived yet.
   */
  function markEnded (ids: readonly string[]): void {
    for (const id of ids) record(id)
  }

  purgeRegularly(lifecycle, 'expired sessions', PURGE_SECONDS, () => deleteExpiredSessions(db, PURGE_BATCH_SIZE))
  purgeRegularly(
    lifecycle, 'ended sessions', PURGE_SECONDS, () => deleteEndedSessions(db, tokenSeconds, PURGE_BATCH_SIZE)
  )

  return {
    /**
     * Opens a session and writes an entry to the account log. Returns the session's id, cookie and expiry, how it was
     * authenticated, and the current role of its user. Ends the session that it replaces. Throws `InvalidCredentials`
     * if the user was deleted or disabled, has another password by now, or no longer has the passkey or the
     * identity. Throws
     * `SecondFactorRequired` if the user has a second factor that was not used.
     * @param inTransaction runs before, in the transaction that stores the session, and has the lock on the user
     */
    async start (
      { replaced, ...opening }: Omit<NewSession, 'secretHash' | 'rotationKey' | 'replaced'> &
        { replaced?: Pick<SessionCookie, 'id' | 'secret'> | undefined },
      inTransaction?: (trx: Database) => Promise<void>
    ): Promise<OpenSession & { role: Role }> {
      const { secret, rotationKey } = createSecrets()
      const { isConsole = false } = opening
      const secretOf = isConsole ? consoleSecret : (given: string) => given
      const insert = (on: Database) => insertSession(on, {
        ...opening,
        secretHash: hashSecret(secretOf(secret)),
        rotationKey,
        replaced: replaced && { id: replaced.id, secretHash: hashSecret(secretOf(replaced.secret)) },
      }, isConsole ? lifetimeOfConsole(options) : options)
      const { id, role, expiresAt, authTime, endedIds } = await (inTransaction
        ? db.transaction().execute(async (trx) => {
          await lockUser(trx, opening.userId)
          await inTransaction(trx)
          return insert(trx)
        })
        : insert(db))
      markEnded(endedIds)
      const cookie =
        isConsole ? writeConsoleCookie({ id, secret }) : writeSessionCookie({ id, secret, rotations: 0 }, rotationKey)
      return { id, role, expiresAt, amr: [...opening.amr], authTime, cookie }
    },

    /**
     * Rotates a session's cookie. Returns the session with its next cookie, and its user as stored now. During the
     * grace period, all requests with the same cookie get the same next one, so that two tabs can refresh at once, and
     * a response that was lost can be repeated. A later request with the old cookie ends the session on every node.
     * Returns undefined if there is no such session or the cookie is not genuine.
     * A session that this node knows to have ended is never refreshed: after a failover to a replica that lags behind,
     * the database may still have its row.
     * @param organizationId of which organisation the membership is returned with it
     */
    async refresh (
      cookie: SessionCookie, origin: ClientInfo, organizationId?: string
    ): Promise<OpenSession & Pick<SessionOfToken, 'user' | 'organization'> | undefined> {
      const { id, secret } = cookie
      if (ended.has(id)) return undefined
      const find = () => findSession(db, { id, secretHash: hashSecret(secret), organizationId }, options.userFields)
      const found = await find()
      if (!found || !isGenuine(cookie, found.rotationKey)) return undefined
      const { user, organization, rotationKey, recentRotations, amr, authTime } = found
      const open = (rotations: number, expiresAt: Date) => ({
        id,
        user,
        organization,
        expiresAt,
        amr,
        authTime,
        cookie: writeSessionCookie({ id, secret, rotations }, rotationKey),
      })

      const age = found.rotations - cookie.rotations
      // The cookie was replaced longer ago than the grace period: either it or its successor was stolen.
      if (age > recentRotations) {
        await end({ id }, { action: 'session.refresh-reuse', actorId: null, ...origin })
        return undefined
      }
      if (age > 0) return open(found.rotations, found.expiresAt)
      const expiresAt = await rotateSession(db, { id, rotations: found.rotations, ...origin }, options)
      if (expiresAt) return open(found.rotations + 1, expiresAt)
      // Another request was faster. Either it refreshed the session, and this one gets the same cookie, or it ended the
      // session.
      const rotated = await find()
      return rotated && open(rotated.rotations, rotated.expiresAt)
    },

    /**
     * Returns a session with its user and the membership in an organisation as stored now, for another of its tokens,
     * or undefined if it has ended.
     */
    ofToken: async (id: string, organizationId: string | undefined): Promise<SessionOfToken | undefined> =>
      ended.has(id) ? undefined : findSessionOfToken(db, { id, organizationId }, options.userFields),

    /** Returns the session that a cookie is of, with its user as stored now, or undefined. The cookie stays valid. */
    async find (cookie: SessionCookie): Promise<CookieSession | undefined> {
      const { id, secret } = cookie
      if (ended.has(id)) return undefined
      const found = await findSession(db, { id, secretHash: hashSecret(secret) }, options.userFields)
      const isCurrent = found && isGenuine(cookie, found.rotationKey) &&
        found.rotations - cookie.rotations <= found.recentRotations
      if (!isCurrent) return undefined
      const { user, amr, authTime, expiresAt } = found
      return { sessionId: id, user, amr, authTime, expiresAt }
    },

    /**
     * Returns the session of the console that a cookie is of, with its user as stored now, or undefined if it has ended
     * or expired.
     */
    async findConsole ({ id, secret }: ConsoleCookie): Promise<CookieSession | undefined> {
      if (ended.has(id)) return undefined
      const secretHash = hashSecret(consoleSecret(secret))
      const found = await findConsoleSession(db, { id, secretHash }, options.userFields)
      return found && { sessionId: id, ...found }
    },

    end,

    /**
     * Ends all sessions of a user, on every node. If somebody else ends them, it then also voids all links and API keys
     * of the user. Writes an entry for each session to the account log, in the same transaction.
     * @param but the id of the session that does not end, if any
     * @param confirmer who ends them, and is asked before the commit
     * @param authorize throws unless the user may be the one, and runs in each transaction after what it ends
     */
    async endAll (
      userId: string, but: string | undefined, origin: AuditContext, confirmer: Confirmer,
      authorize?: (trx: Database) => Promise<void>
    ): Promise<void> {
      const endBy = async (deleteSessions: (trx: Database) => Promise<string[]>) =>
        markEnded(await db.transaction().execute(async (trx) => {
          const ids = await deleteSessions(trx)
          await authorize?.(trx)
          await insertAuditEntries(
            trx, ids.map((sessionId) => ({ ...origin, action: 'session.end', userId, sessionId }))
          )
          await confirmer.confirm()
          return ids
        }))
      await endBy((trx) => deleteSessionsOf(trx, userId, origin.actorId, but))
      // The user's own links remain: a thief of a session must not be able to get rid of those with which the owner
      // undoes a change.
      if (origin.actorId === userId) return
      let alsoEnded: string[] = []
      // This waits for a change of the user that is being made, which the sessions must not.
      await endBy(async (trx) => {
        const repaired = await repairAccount(trx, userId, 'sessions-end', { actorId: origin.actorId })
        alsoEnded = endedOf(repaired)
        return repaired.sessions
      })
      markEnded(alsoEnded)
    },

    /** Returns the sessions of a user that have neither ended nor expired, newest first. */
    list: (userId: string): Promise<SessionRow[]> => listSessionsOf(db, userId),

    /** Returns the id of a session's user, or undefined if there is no such session or it has expired. */
    ownerOf: (id: string): Promise<string | undefined> => findSessionOwner(db, id),

    markEnded,

    /**
     * Returns whether a token is live: its session has not ended, nor the membership for which it was issued, and its
     * signing key has not been revoked; or whether an API key has not been deleted. A node that receives notifications
     * knows; any other one asks the database, for a client that may disconnect. Rejects with `DatabaseUnavailable`.
     * @param isKnown false if this node may have forgotten that it has ended, so that it must ask
     */
    isLive (token: TokenToCheck, client?: Client, isKnown = true): boolean | Promise<boolean> {
      if (isKnownToEnd(token)) return false
      if (isKnown && notifications.connected && signingKeys.isUpToDate) return true
      return readLiveToken(token, client).then((live) => {
        // The key may have been revoked, and then this node must not sign with it. If the read fails, the next such
        // token repeats it.
        if (!live) signingKeys.learn().catch(() => {})
        return live && !isKnownToEnd(token)
      }, throwUnavailable)
    },

    /**
     * Returns whether the membership of a token has ended, and the session has not, so that a refresh leads to another
     * token (contract 19.3). Reads the database unless this node knows. Rejects with `DatabaseUnavailable`.
     */
    hasLostMembership (token: TokenToCheck, client?: Client): boolean | Promise<boolean> {
      const { id, kid, membershipId } = token
      if (membershipId === undefined || ended.has(id)) return false
      const isKnown = ended.has(membershipId)
      if (isKnown && notifications.connected && signingKeys.isUpToDate) return true
      return Promise.all([isKnown ? false : readLiveToken(token, client), readLiveToken({ id, kid }, client)])
        .then(([isLive, hasSession]) => !isLive && hasSession, throwUnavailable)
    },

    /**
     * Returns whether this node knows that a session has ended, or that an API key was deleted, a while ago at most.
     */
    hasEnded: (id: string): boolean => ended.has(id),

    /** A number that changes when this node may have missed that something has ended long ago. */
    get generation () { return generation },

    exists,

    /** Does the same as `exists` for the session or the API key of a token and for its membership. */
    existsFor ({ id, membershipId }: TokenIds): boolean | Promise<boolean> {
      const hasSession = exists(id)
      if (membershipId === undefined || hasSession === false) return hasSession
      const hasMembership = exists(membershipId)
      if (hasSession === true || hasMembership === false) return hasMembership
      return Promise.all([hasSession, hasMembership]).then((found) => found.every((exists) => exists))
    },

    /**
     * Calls `onEnd` when this node learns that a live session, membership or API key has ended on any node. Returns a
     * function that stops watching. A node that does not receive notifications learns of it when it receives them
     * again, so its caller has to ask (`plugins/access/identity.ts`).
     */
    watch (id: string, onEnd: () => void): () => void {
      const watching = watchers.get(id) ?? new Set()
      watchers.set(id, watching.add(onEnd))
      return () => {
        watching.delete(onEnd)
        if (watching.size === 0) watchers.delete(id)
      }
    },
  }

  function isKnownToEnd ({ id, membershipId }: TokenIds): boolean {
    return ended.has(id) || (membershipId !== undefined && ended.has(membershipId))
  }

  /** Does the same as `isLive` for a session, a membership or an API key, whatever its tokens. */
  function exists (id: string): boolean | Promise<boolean> {
    return !ended.has(id) && (notifications.connected || readSession(id).catch(throwUnavailable))
  }

  /**
   * Ends a session, and those that were opened with its tokens, on every node and writes an entry to the account log,
   * in one statement. Does nothing if there is no such session.
   * @param session its id, and the secret of its cookie if that is how the client names it
   */
  async function end ({ id, secret }: { id: string, secret?: string }, entry: EndContext): Promise<void> {
    markEnded(await deleteSession(db, { id, ...secret !== undefined && { secretHash: hashSecret(secret) } }, entry))
  }
}

/** Throws an error of the catalogue as it is, and any other one as the cause of `DatabaseUnavailable`. */
export function throwUnavailable (cause: unknown): never {
  throw cause instanceof UsherError ? cause : new DatabaseUnavailable({ cause })
}

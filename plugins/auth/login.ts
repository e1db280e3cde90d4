import { fastifyCookie } from '@fastify/cookie'
import type { UserRow } from '../../db/tables/index.ts'
import { findCredentials, updatePasswordHash } from '../../db/users/users.ts'
import { InvalidCredentials } from '../../schema/auth/login.ts'
import type { ActorClaims } from '../../schema/auth/claims.ts'
import { Forbidden } from '../../schema/http/errors.ts'
import type { Actor } from '../../schema/options/policy.ts'
import { UserDisabled } from '../../schema/users/user.ts'
import type { StartedSession } from '../../schema/options/usher.ts'
import type { Audit } from '../audit/index.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { Users } from '../users/index.ts'
import type { Caller } from './caller.ts'
import type { Claims } from './claims.ts'
import type { SessionCookie } from './cookie-value.ts'
import type { Passwords } from './passwords.ts'
import { attributesOf, SESSION_COOKIE } from './session-cookie.ts'
import type { OpenSession, Sessions } from './sessions.ts'
import type { LoginAttempt, Throttle } from './throttle/throttle.ts'
import type { Tokens } from './tokens.ts'

/** A session that a login has started, with its first token. */
export interface LoggedIn extends OpenSession {
  /** The user, with the role that the session was started with. */
  user: UserRow
  actor: Actor
  token: string
}

/** What a user logs in with. */
interface Credentials {
  email: string
  password: string
  /** The session of the browser's cookie, which the login ends. */
  replaced: SessionCookie | undefined
}

interface Dependencies extends Pick<Core, 'database' | 'options'> {
  users: Users
  audit: Audit
  hooks: HookRunner
  sessions: Sessions
  tokens: Tokens
  claims: Claims
  passwords: Passwords
  throttle: Throttle
}

export type LoginFunctions = ReturnType<typeof createLogin>

/**
 * Logs users in. Every way to log in ends in `start`, which runs the hook of the host, asks for its claims, opens the session, writes the
 * entry of the account log and signs the token (contract 4.1, 12.1).
 */
export function createLogin (
  { database: { db, clock }, users, audit, hooks, sessions, tokens, claims, passwords, throttle, options }: Dependencies
) {
  const { userFields } = options

  // Throws `InvalidCredentials` if the user was deleted or disabled, or the password was changed, since it was checked.
  async function start (caller: Caller, user: UserRow, opening: { passwordHash?: string, replaced?: SessionCookie | undefined }): Promise<LoggedIn> {
    await hooks.check('beforeLogin', user, caller)
    // Before the session, so that there is none if the host's function fails.
    const added = await claims.of(user)
    const { address, userAgent } = caller
    const { role, ...session } = await sessions.start({ userId: user.id, ...opening, address, userAgent })
    const current = { ...user, role }
    return { ...session, user: current, ...sign(session, current, role === user.role ? added : await claims.of(current)) }
  }

  function sign ({ id, expiresAt }: Pick<OpenSession, 'id' | 'expiresAt'>, user: UserRow, added: ActorClaims): { actor: Actor, token: string } {
    const actor = { id: user.id, role: user.role, sessionId: id, claims: added }
    return { actor, token: tokens.sign(actor, { expiresAt }) }
  }

  // An unknown address takes as long as a wrong password, so that the response time does not reveal which accounts exist. So does a
  // disabled user, whose right password must not be confirmed.
  async function verify (
    caller: Caller, credentials: Credentials, attempt: LoginAttempt
  ): Promise<UserRow & { passwordHash: string }> {
    const { email, password } = credentials
    const user = await findCredentials(db, email, userFields)
    const match = await passwords.verify(password, user?.passwordHash, caller.client!)
    if (!match || user!.disabled) return reject(caller, user?.id, attempt)
    const { passwordHash } = user as { passwordHash: string }
    if (!match.isOutdated) return { ...user!, passwordHash }
    const renewed = await passwords.hash(password)
    if (await updatePasswordHash(db, user!.id, passwordHash, renewed)) return { ...user!, passwordHash: renewed }
    // The hash has changed meanwhile, usually because another login has renewed it. The password is verified against the new one.
    return verify(caller, credentials, attempt)
  }

  async function reject (caller: Caller, userId: string | undefined, attempt: LoginAttempt): Promise<never> {
    await Promise.all([attempt.failed(), audit.add(caller, { action: 'login.failed', userId })])
    throw new InvalidCredentials()
  }

  return {
    sign,

    /** Logs a user in by address and password. Throws `InvalidCredentials`, `TooManyRequests`, and what a hook of the host throws. */
    async withPassword (caller: Caller, credentials: Credentials): Promise<LoggedIn> {
      const { address, client } = caller
      const attempt = await throttle.login({ email: credentials.email, address, ...client && { client } })
      try {
        const { passwordHash, ...user } = await verify(caller, credentials, attempt)
        const loggedIn = await start(caller, user, { passwordHash, replaced: credentials.replaced })
          .catch((error) => error instanceof InvalidCredentials ? reject(caller, user.id, attempt) : Promise.reject(error))
        await attempt.succeeded()
        return loggedIn
      } catch (error) {
        if (!(error instanceof InvalidCredentials)) attempt.withdraw()
        throw error
      }
    },

    /**
     * Starts a session for a user whom the host has authenticated, without a password. Throws `Forbidden` for anyone but the host,
     * `UserNotFound`, `UserDisabled`.
     * @param protocol that of the request for which the session is started, if there is one
     */
    async forHost (caller: Caller, userId: string, protocol: string | undefined): Promise<StartedSession> {
      if (!caller.isHost) throw new Forbidden()
      const user = await users.get(userId)
      if (user.disabled) throw new UserDisabled()
      const { token, cookie, expiresAt } = await start(caller, user, {}).catch(async (error) => {
        if (!(error instanceof InvalidCredentials)) throw error
        // The user was deleted or disabled meanwhile.
        await users.get(userId)
        throw new UserDisabled()
      })
      return {
        token,
        cookie: fastifyCookie.serialize(SESSION_COOKIE, cookie, attributesOf(options, protocol, expiresAt, clock.now())),
        expiresAt,
      }
    },
  }
}

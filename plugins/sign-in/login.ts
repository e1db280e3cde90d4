import { fastifyCookie } from '@fastify/cookie'
import { findAccount, type Account } from '../../db/mail-links/password-links.ts'
import { stepUpSession } from '../../db/sign-in/step-up.ts'
import type { UsedIdentity, UsedPasskey } from '../../db/access/sessions.ts'
import type { Database, UserRow } from '../../db/tables/index.ts'
import { findCredentials, lockUser, updatePasswordHash, type Credentials } from '../../db/users/users.ts'
import { InvalidCredentials, InvalidToken } from '../../schema/sign-in/login.ts'
import { WrongPassword } from '../../schema/sign-in/passwords/passwords.ts'
import { MULTI_FACTOR } from '../../schema/access/sessions.ts'
import { InvalidChallenge, InvalidSecondFactor, SecondFactorRequired } from '../../schema/sign-in/second-factor.ts'
import type { ActorClaims } from '../../schema/access/claims.ts'
import { Forbidden } from '../../schema/http/errors.ts'
import type { Actor, ActorOrganization } from '../../schema/options/policy.ts'
import { ServiceUser, UserDisabled } from '../../schema/users/users.ts'
import type { StartedSession } from '../../schema/options/usher.ts'
import type { Audit } from '../audit/index.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { UserRecords } from '../users/user-records.ts'
import type { Caller } from '../access/caller.ts'
import type { Claims } from '../access/claims.ts'
import { requireMembership } from '../access/memberships.ts'
import { attributesOf, SESSION_COOKIE, type SessionCookie } from '../access/cookies.ts'
import type { Hashing, Passwords } from './passwords/passwords.ts'
import type { SecondFactor } from './second-factor.ts'
import type { OpenSession, Sessions } from '../access/sessions.ts'
import type { LoginAttempt, Throttle } from '../throttle/throttle.ts'
import type { Tokens } from '../access/tokens.ts'

const PASSWORD: readonly string[] = ['pwd']

/** A session that a login has started, with its first token. */
export interface LoggedIn extends OpenSession {
  /** The user, with the role that the session was started with. */
  user: UserRow
  actor: Actor
  token: string
}

/** What a user logs in with. */
interface GivenCredentials {
  email: string
  password: string
  /** The session of the browser's cookie, which the login ends. */
  replaced: ReplacedSession | undefined
}

type ReplacedSession = Pick<SessionCookie, 'id' | 'secret'>

/** How a user was authenticated, for the session that follows. */
export interface Proof {
  /** RFC 8176. */
  amr: readonly string[]
  /** The hash against which the password was checked, if it was. */
  passwordHash?: string | undefined
  /** The passkey that was used, if one was. */
  passkey?: UsedPasskey | undefined
  /** The identity at a provider that was used, if one was. */
  identity?: UsedIdentity | undefined
  /** The session of the browser's cookie, which the login ends. */
  replaced?: ReplacedSession | undefined
  /** Whether the session is one of the console (contract 18.3). */
  isConsole?: boolean | undefined
  /** The session with which this one is opened, and ends. */
  parentId?: string | undefined
  /** When the user was authenticated, if not now. */
  authTime?: Date | undefined
  /** Uses up what can be used once, right before the session starts. It throws if that was used meanwhile. */
  consume?: (() => Promise<void>) | undefined
  /**
   * Does the same in the transaction that stores the session, with the lock on the user: a repair of the account, which
   * voids what is used here, then either precedes it or ends the session.
   */
  inTransaction?: ((trx: Database) => Promise<void>) | undefined
}

/** A second factor that was found to be right, but is not used up yet. */
export interface SecondProof {
  amr: readonly string[]
  passkey?: UsedPasskey | undefined
  /** Uses it up in a transaction. It throws `InvalidSecondFactor` if it was used meanwhile. */
  consume: (trx: Database) => Promise<void>
}

interface Dependencies extends Pick<Core, 'database' | 'options'> {
  users: UserRecords
  audit: Audit
  hooks: HookRunner
  sessions: Sessions
  tokens: Tokens
  claims: Claims
  passwords: Passwords
  throttle: Throttle
  secondFactor: SecondFactor
}

export type LoginFunctions = ReturnType<typeof createLogin>

/**
 * Logs users in. Every way to log in ends in `start`, which runs the hook of the host, asks for its claims, opens the
 * session, writes the entry of the account log and signs the token (contract 4.1, 12.1).
 */
export function createLogin (
  {
    database: { db, clock }, users, audit, hooks, sessions, tokens, claims, passwords, throttle, secondFactor, options,
  }: Dependencies
) {
  const { userFields } = options

  // Throws `InvalidCredentials` if the user was deleted or disabled, the password was changed, or the passkey or the
  // identity was removed, since it was checked. Throws `SecondFactorRequired` if the user has one that was not used.
  async function start (
    caller: Caller, user: UserRow, { consume, inTransaction, ...opening }: Proof
  ): Promise<LoggedIn> {
    await hooks.check('beforeLogin', user, caller)
    // Before the session, so that there is none if the host's function fails.
    const added = await claims.of(user)
    await consume?.()
    const { address, userAgent } = caller
    const { role, ...session } = await sessions
      .start({ userId: user.id, ...opening, address, userAgent }, inTransaction)
      .catch(async (error) => {
        // The factor was added a moment ago, or the first factor is one of which nobody has asked.
        throw error instanceof SecondFactorRequired ? await secondFactor.demand(user.id, opening) : error
      })
    const current = { ...user, role }
    return {
      ...session, user: current, ...sign(session, current, role === user.role ? added : await claims.of(current)),
    }
  }

  function sign (
    { id, amr, authTime, expiresAt }: Omit<OpenSession, 'cookie'>, user: UserRow, added: ActorClaims,
    organization: ActorOrganization | null = null
  ): { actor: Actor, token: string } {
    const seconds = Math.floor(authTime.getTime() / 1000)
    const actor = {
      id: user.id,
      role: user.role,
      sessionId: id,
      keyId: null,
      actions: null,
      amr,
      authTime: seconds,
      organization,
      claims: added,
    }
    return { actor, token: tokens.sign(actor, { expiresAt }) }
  }

  // An unknown address takes as long as a wrong password, so that the response time does not reveal which accounts
  // exist. So does a disabled user, whose right password must not be confirmed: none is checked.
  async function verify (
    caller: Caller, { email, password }: Pick<GivenCredentials, 'email' | 'password'>, attempt: LoginAttempt
  ): Promise<Credentials & { passwordHash: string }> {
    const user = await findCredentials(db, email, userFields)
    const match = await passwords.verify(password, user?.disabled ? null : user?.passwordHash, {
      client: caller.client, address: caller.address, isKnown: attempt.isRecognised,
    })
    if (!match) return reject(caller, user?.id, attempt)
    const { passwordHash } = user as { passwordHash: string }
    if (!match.isOutdated) return { ...user!, passwordHash }
    const renewed = await passwords.hash(password, { address: caller.address, isKnown: true })
    if (await updatePasswordHash(db, user!.id, passwordHash, renewed)) return { ...user!, passwordHash: renewed }
    // The hash has changed meanwhile, usually because another login has renewed it. The password is verified against
    // the new one.
    return verify(caller, { email, password }, attempt)
  }

  // Returns the hash of a user who has this password, hashed anew if the one that was found is outdated. Returns
  // undefined if the password is wrong.
  async function verifyAccount (
    { id, passwordHash }: Pick<Account, 'id' | 'passwordHash'>, password: string, hashing: Hashing
  ): Promise<string | undefined> {
    const match = await passwords.verify(password, passwordHash, hashing)
    if (!match) return undefined
    if (!match.isOutdated) return passwordHash!
    const renewed = await passwords.hash(password, hashing)
    if (await updatePasswordHash(db, id, passwordHash!, renewed)) return renewed
    // The hash has changed meanwhile, usually because a login has renewed it.
    const current = await findAccount(db, id)
    return current && verifyAccount(current, password, hashing)
  }

  async function reject (caller: Caller, userId: string | undefined, attempt: LoginAttempt): Promise<never> {
    await Promise.all([attempt.failed(), audit.add(caller, { action: 'login.failed', userId })])
    throw new InvalidCredentials()
  }

  return {
    sign,

    /**
     * Returns another token of the caller's session: for an organisation, or for none without `organizationId`
     * (contract 19.3). Throws `OrganizationNotFound`, `SessionRequired`, `InvalidToken`, `MembershipEnded`.
     */
    async issueToken (
      caller: Caller, organizationId: string | undefined
    ): Promise<Pick<LoggedIn, 'token' | 'expiresAt' | 'user' | 'actor'>> {
      const { sessionId } = caller.getSession()
      const session = await sessions.ofToken(sessionId, organizationId)
      if (!session) throw new InvalidToken()
      const { user, expiresAt } = session
      const organization = requireMembership(options, session.organization, organizationId)
      const added = await claims.of(user)
      await caller.confirm()
      return { expiresAt, user, ...sign({ id: sessionId, ...session }, user, added, organization) }
    },

    /** Starts a session for a user whose authentication was proved in another way. Throws what the others throw. */
    start,

    /** Returns for how many seconds a new token of a session is valid. */
    secondsLeft: (expiresAt: Date): number =>
      Math.min(tokens.lifetime, Math.floor((expiresAt.getTime() - clock.now()) / 1000)),

    /**
     * Checks the password of the caller's own account, with the limits of logins. Returns the hash that the user has
     * now, since an outdated one is renewed. Throws `WrongPassword`, after `onWrong`, and `TooManyRequests`.
     */
    async checkOwnPassword (
      { address, client }: Caller, account: Pick<Account, 'id' | 'email' | 'passwordHash'>, password: string,
      onWrong: () => Promise<void>
    ): Promise<string> {
      const attempt = await throttle.login({ email: account.email, address, ...client && { client } })
      const passwordHash = await verifyAccount(account, password, { client, address, isKnown: true }).catch((error) => {
        attempt.withdraw()
        throw error
      })
      if (passwordHash !== undefined) {
        await attempt.succeeded()
        return passwordHash
      }
      await Promise.all([attempt.failed(), onWrong()])
      throw new WrongPassword()
    },

    /**
     * Authenticates the user of the caller's session once more (contract 16.2). Returns the session with a new token.
     * Throws `InvalidToken` if the session has ended or the proof does not suffice by now.
     * @param consume uses up what can be used once, in the transaction that records the authentication
     */
    async stepUp (
      caller: Caller,
      { amr, passwordHash, consume }: Pick<Proof, 'amr' | 'passwordHash'> & Partial<Pick<SecondProof, 'consume'>>
    ): Promise<Pick<LoggedIn, 'token' | 'expiresAt' | 'user' | 'actor'>> {
      const { id: userId, sessionId } = caller.getSession()
      const { organization } = caller.getActor()
      const user = await users.read(userId, caller.client)
      if (!user) throw new InvalidToken()
      const added = await claims.of(user)
      await caller.confirm()
      const authenticated = await db.transaction().execute(async (trx) => {
        // First, as repairs of the account do, which then void what is used here.
        await lockUser(trx, userId)
        await consume?.(trx)
        const found = await stepUpSession(trx, { sessionId, userId, amr, passwordHash })
        if (!found) throw new InvalidToken()
        await audit.add(caller, { action: 'step-up' }, trx)
        return found
      })
      return { ...authenticated, user, ...sign({ id: sessionId, ...authenticated }, user, added, organization) }
    },

    /**
     * Logs a user in by address and password. Throws `InvalidCredentials`, `SecondFactorRequired` with a challenge,
     * `TooManyRequests`, and what a hook of the host throws.
     */
    async withPassword (caller: Caller, credentials: GivenCredentials): Promise<LoggedIn> {
      const { address, client } = caller
      const attempt = await throttle.login({ email: credentials.email, address, ...client && { client } })
      try {
        const { passwordHash, has_second_factor: hasSecondFactor, ...user } = await verify(caller, credentials, attempt)
        const proof = { amr: PASSWORD, passwordHash, replaced: credentials.replaced }
        if (hasSecondFactor) throw await secondFactor.demand(user.id, proof)
        const loggedIn = await start(caller, user, proof)
          .catch((error) =>
            error instanceof InvalidCredentials ? reject(caller, user.id, attempt) : Promise.reject(error))
        await attempt.succeeded()
        return loggedIn
      } catch (error) {
        if (error instanceof SecondFactorRequired) await attempt.succeeded()
        else if (!(error instanceof InvalidCredentials)) attempt.withdraw()
        throw error
      }
    },

    /**
     * Completes a login whose first factor was right. Throws `InvalidChallenge`, `InvalidSecondFactor`,
     * `InvalidCredentials`, `TooManyRequests`, and what a hook of the host throws.
     * @param prove checks the second factor of a user. It throws `InvalidSecondFactor`
     */
    async withSecondFactor (
      caller: Caller,
      { challenge, replaced }: { challenge: string, replaced: ReplacedSession | undefined },
      prove: (userId: string) => Promise<SecondProof>
    ): Promise<LoggedIn> {
      const { userId, passwordHash, amr, identityId, providerSid } = await secondFactor.attempt(challenge)
      const user = await users.read(userId, caller.client)
      if (!user || user.disabled) throw new InvalidChallenge()
      try {
        const { amr: added, passkey, consume } = await prove(userId)
        return await start(caller, user, {
          amr: [...new Set([...amr, ...added, MULTI_FACTOR])],
          passwordHash: passwordHash ?? undefined,
          passkey,
          identity: identityId === null ? undefined : { id: identityId, sid: providerSid ?? undefined },
          replaced,
          async inTransaction (trx) {
            await secondFactor.use(trx, challenge)
            await consume(trx)
          },
        })
      } catch (error) {
        if (error instanceof InvalidSecondFactor) {
          await audit.add(caller, { action: 'login.second-factor-failed', userId })
        }
        throw error
      }
    },

    /**
     * Starts a session for a user whom the host has authenticated, without a password. Throws `Forbidden` for anyone
     * but the host, `UserNotFound`, `ServiceUser`, `UserDisabled`, and `SecondFactorRequired` if the user has one that
     * `amr` does not name.
     * @param amr how the host has authenticated the user (RFC 8176)
     * @param protocol that of the request for which the session is started, if there is one
     */
    async forHost (
      caller: Caller, userId: string,
      { amr = [], protocol }: { amr?: readonly string[] | undefined, protocol?: string | undefined }
    ): Promise<StartedSession> {
      if (!caller.isHost) throw new Forbidden()
      const user = await users.get(userId)
      if (user.kind === 'service') throw new ServiceUser()
      if (user.disabled) throw new UserDisabled()
      const { token, cookie, expiresAt } = await start(caller, user, { amr }).catch(async (error) => {
        if (!(error instanceof InvalidCredentials)) throw error
        // The user was deleted or disabled meanwhile.
        await users.get(userId)
        throw new UserDisabled()
      })
      return {
        token,
        cookie: fastifyCookie.serialize(
          SESSION_COOKIE, cookie, attributesOf(options, protocol, expiresAt, clock.now())
        ),
        expiresAt,
      }
    },
  }
}

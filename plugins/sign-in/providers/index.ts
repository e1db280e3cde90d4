import { createHash } from 'node:crypto'
import {
  deleteIdentity, findIdentity, hasIdentityOf, insertIdentity, listIdentities, updateIdentity,
  type FoundIdentity, type IdentityRow,
} from '../../../db/sign-in/providers/identities.ts'
import type { SignUpIdentity } from '../../../db/mail-links/sign-ups.ts'
import { endProviderSessions } from '../../../db/sign-in/providers/logout.ts'
import { findTokens, openTokens, sealTokens, type ProviderTokens } from '../../../db/sign-in/providers/tokens.ts'
import { findAccount } from '../../../db/mail-links/password-links.ts'
import { findSecondFactors } from '../../../db/sign-in/second-factor.ts'
import { endedOf, repairAccount } from '../../../db/sign-in/repairs.ts'
import { useCeremony } from '../../../db/sign-in/passkeys.ts'
import { holdSession } from '../../../db/access/live-sessions.ts'
import { stepUpSession } from '../../../db/sign-in/step-up.ts'
import type { Database, UserRow } from '../../../db/tables/index.ts'
import { findUsers, lockUser } from '../../../db/users/users.ts'
import { InvalidCredentials, InvalidToken } from '../../../schema/sign-in/login.ts'
import {
  AccountDisabled, AccountUnverified, EmailUnproven, FEDERATED, IdentityNotFound, IdentityTaken, InvalidState,
  LinkRequired, OtherIdentity, ProviderTooWeak,
  ProviderDenied, ProviderEmailMissing, ProviderLoginStale, ProviderMisconfigured, ProviderNotFound, ProviderRejected,
  ProviderUnavailable, SignUpClosed,
  type Provider, type ProviderResponse,
} from '../../../schema/sign-in/providers.ts'
import { SecondFactorMissing, SecondFactorRequired } from '../../../schema/sign-in/second-factor.ts'
import { MULTI_FACTOR } from '../../../schema/access/sessions.ts'
import { Forbidden, UsherError } from '../../../schema/http/errors.ts'
import { baseUrlOf } from '../../../schema/options/public-url.ts'
import type { PresetName } from '../../../schema/options/providers.ts'
import { foldEmail } from '../../../schema/strings/address.ts'
import { OtherAddress } from '../../../schema/organizations/organizations.ts'
import { EmailTaken, ServiceUser, UserNotFound } from '../../../schema/users/users.ts'
import type { Audit } from '../../audit/index.ts'
import type { Core } from '../../core.ts'
import type { UserRecords } from '../../users/user-records.ts'
import type { Caller } from '../../access/caller.ts'
import type { SessionCookie } from '../../access/cookies.ts'
import type { Credentials } from '../credentials.ts'
import type { LoggedIn, LoginFunctions } from '../login.ts'
import type { Sessions } from '../../access/sessions.ts'
import type { SecondFactor } from '../second-factor.ts'
import type { SigningKeys } from '../../access/signing-keys.ts'
import type { StepUp } from '../step-up.ts'
import type { Throttle } from '../../throttle/throttle.ts'
import { apple, nameInForm } from './apple.ts'
import { createAttempts, type Intent, type OpenedAttempt } from './attempts.ts'
import type { ProviderClient } from './client.ts'
import { github } from './github.ts'
import { google } from './google.ts'
import { microsoft } from './microsoft.ts'
import type { Preset, Profile } from './preset.ts'
import { emailOf, nameOf } from './texts.ts'

const presets: Readonly<Record<PresetName, Preset>> = { github, google, microsoft, apple }

// Two tabs may log somebody in for the first time at once.
const TRIES = 3
// How much earlier than here a provider may say that it has authenticated the user.
const AUTH_TIME_TOLERANCE_SECONDS = 60
const MAX_TOKENS_CHARACTERS = 32 * 1024

/** Somebody who gets an account, because the provider says who it is. */
export interface NewProviderUser {
  name: string
  /** The provider proves it. */
  email: string
}

/**
 * Creates a user, and what `inTransaction` adds. Rejects with `EmailTaken`, and what a hook of the host throws.
 */
export type CreateProviderUser =
  (user: NewProviderUser, inTransaction: (trx: Database, created: UserRow) => Promise<void>) => Promise<UserRow>

/** How somebody without an account gets one. */
export interface ProviderAccounts {
  create: CreateProviderUser
  /** Sends a mail whose link creates the user, if the address is free. Returns what only this browser may know. */
  signUp: (user: { name: string, email: string }, identity: SignUpIdentity) => Promise<string>
  /**
   * Creates the user of an invitation, and what `inTransaction` adds. Rejects with `InvalidInput` if it is void,
   * `OtherAddress`, and `InvitationLoginRequired` if an account has the address.
   * @param hash that of the token of the invitation
   */
  join: (hash: Uint8Array, ...given: Parameters<CreateProviderUser>) => Promise<UserRow>
}

/** What a provider has sent, and to which browser. */
export interface Callback {
  provider: string
  response: ProviderResponse
  /** The secrets in the cookies of the browser. */
  browsers: readonly string[]
  /** The session of the browser's cookie, which a login ends. */
  replaced: SessionCookie | undefined
}

/** What a callback was for, and where the browser goes. Without `loggedIn`, no session was started. */
export interface Completed {
  intent: Intent
  returnTo: string | undefined
  loggedIn: LoggedIn | undefined
}

/** A callback that has failed, with what is known about what it was for. */
export class CallbackFailure extends Error {
  override readonly cause: Error
  readonly attempt: OpenedAttempt | undefined

  constructor (cause: Error, attempt?: OpenedAttempt) {
    super(cause.message)
    this.cause = cause
    this.attempt = attempt
  }
}

interface Dependencies extends Core {
  users: UserRecords
  audit: Audit
  login: LoginFunctions
  sessions: Sessions
  signingKeys: SigningKeys
  secondFactor: SecondFactor
  stepUp: StepUp
  throttle: Throttle
  credentials: Credentials
}

export type Providers = Awaited<ReturnType<typeof createProviders>>

/** Signs users in by providers, and keeps which identities they have there (contract 16.5). */
export async function createProviders (dependencies: Dependencies) {
  const {
    database: { db, newId }, telemetry: { metrics }, users, audit, login, sessions, secondFactor, stepUp, throttle,
    credentials, options,
  } = dependencies
  const attempts = createAttempts(dependencies)
  const clients = new Map<string, ProviderClient>()
  // Imported only then, because it needs the HTTP client of Node.js.
  if (options.providers.length > 0) {
    const { createProviderClient } = await import('./client.ts')
    for (const option of options.providers) {
      clients.set(option.id, createProviderClient(dependencies, option, option.preset && presets[option.preset]))
    }
  }
  const ids = [...clients.keys()]
  const counted = metrics.counter('usher_provider_callbacks_total', 'Responses of providers to logins', {
    label: 'result', values: ['accepted', 'rejected', 'unavailable'],
  })
  const loggedOut = metrics.counter('usher_provider_logouts_total', 'Logouts of providers that were accepted')

  function clientOf (provider: string): ProviderClient {
    const client = clients.get(provider)
    if (!client) throw new ProviderNotFound()
    return client
  }

  // The header `Host` must not be used: whoever sends the request chooses it.
  const redirectUriOf = (provider: string): string =>
    `${baseUrlOf(options)}/api/auth/providers/${provider}/callback`

  async function begin (
    { provider, intent, returnTo, browser, caller, invitation }: {
      provider: string
      intent: Intent
      returnTo: string | undefined
      browser: string
      caller?: Caller
      invitation?: string
    }
  ): Promise<string> {
    const client = clientOf(provider)
    const { id: userId, sessionId } = caller?.getSession() ?? {}
    const attempt = attempts.create(browser, { provider, intent, returnTo, userId, sessionId, invitation })
    return client.authorizationUrl(attempt, redirectUriOf(provider), intent === 'step-up')
  }

  // Returns the providers with which a user may step up (contract 16.2). One that does not log the user in once more
  // only proves that the browser has a session there. It suffices for users who have nothing else, who could not step
  // up at all.
  async function findStepUpProviders (on: Database, userId: string): Promise<string[]> {
    const identities = await listIdentities(on, userId)
    const linked = ids.filter((id) => identities.some(({ provider }) => provider === id))
    const strong = linked.filter((id) => clients.get(id)!.reauthenticates)
    if (strong.length === linked.length) return linked
    const account = await findAccount(on, userId)
    const [user] = options.loginMail ? await findUsers(on, [userId]) : []
    const { totp, passkeys } = await findSecondFactors(on, userId)
    const hasOthers = strong.length > 0 || totp || passkeys > 0 || typeof account?.passwordHash === 'string' ||
      user?.emailVerified === true
    return hasOthers ? strong : linked
  }

  // Who has no identity there learns that at the callback.
  async function requireStepUpProvider (userId: string, provider: string): Promise<void> {
    if (clientOf(provider).reauthenticates) return
    const [usable, identities] = await Promise.all([findStepUpProviders(db, userId), listIdentities(db, userId)])
    if (!usable.includes(provider) && identities.some((one) => one.provider === provider)) throw new ProviderTooWeak()
  }

  // Uses the attempt up and asks the provider who has logged in.
  async function redeem (
    client: ProviderClient, attempt: OpenedAttempt, { provider, response }: Callback
  ): Promise<Profile> {
    if (response.error === undefined && !await useCeremony(db, attempt)) throw new InvalidState()
    const { nonce, verifier } = attempt
    const { state = '', code, iss, error, user } = response
    const parameters = Object.entries({ state, code, iss, error }).filter(([, value]) => value !== undefined)
    const profile = await client.redeem(
      Object.fromEntries(parameters) as Record<string, string>, redirectUriOf(provider), { nonce, verifier, state }
    )
    const inForm = client.option.preset === 'apple' && typeof user === 'string' ? nameInForm(user) : undefined
    return { ...profile, name: profile.name ?? inForm }
  }

  const seal = (id: string, tokens: ProviderTokens | undefined, log: Caller['log']): string | null => {
    if (!tokens || options.secret === undefined) return null
    if (JSON.stringify(tokens).length > MAX_TOKENS_CHARACTERS) {
      log.warn({ identityId: id }, 'The tokens of a provider are too large to be stored')
      return null
    }
    return sealTokens(options.secret, id, tokens)
  }

  function identityOf (caller: Caller, userId: string, provider: string, profile: Profile) {
    const id = newId()
    const { issuer, subject, tokens } = profile
    const email = emailOf(profile.email) ?? null
    return { id, userId, provider, issuer, subject, email, tokens: seal(id, tokens, caller.log) }
  }

  function amrOf ({ option }: ProviderClient, { amr }: Profile): string[] {
    return option.trustSecondFactor && amr.includes(MULTI_FACTOR) ? [FEDERATED, MULTI_FACTOR] : [FEDERATED]
  }

  /** Logs in whoever the provider names: the user of the identity, of the address, or a new one. */
  async function logIn (
    caller: Caller, client: ProviderClient, profile: Profile, callback: Callback, accounts: ProviderAccounts
  ): Promise<LoggedIn> {
    for (let tries = 1; ; tries++) {
      const found = await findIdentity(db, profile, options.userFields)
      try {
        return await (found
          ? start(caller, client, profile, callback, found)
          : join(caller, client, profile, callback, accounts))
      } catch (error) {
        // Another tab was faster, or the address was taken or given up meanwhile.
        if (tries === TRIES || !(error instanceof IdentityTaken || error instanceof EmailTaken)) throw error
      }
    }
  }

  async function start (
    caller: Caller, client: ProviderClient, profile: Profile, { replaced }: Callback,
    { identityId, user }: FoundIdentity, inTransaction?: (trx: Database) => Promise<void>
  ): Promise<LoggedIn> {
    if (user.disabled) throw new AccountDisabled()
    // An address that could not be read has not changed.
    const email = emailOf(profile.email) ?? (profile.failure ? undefined : null)
    return login.start(caller, user, {
      amr: amrOf(client, profile),
      identity: { id: identityId, sid: profile.sid },
      replaced,
      inTransaction: inTransaction ?? (async (trx) =>
        updateIdentity(trx, { id: identityId, email, tokens: seal(identityId, profile.tokens, caller.log) })),
    }).catch(async (error) => {
      if (!(error instanceof InvalidCredentials)) throw error
      // The user was disabled, or the identity removed, since they were read.
      const now = await findIdentity(db, profile)
      throw now?.user.disabled ? new AccountDisabled({ cause: error }) : new IdentityNotFound({ cause: error })
    })
  }

  // Nobody has the identity yet.
  async function join (
    caller: Caller, client: ProviderClient, profile: Profile, callback: Callback, accounts: ProviderAccounts
  ): Promise<LoggedIn> {
    const email = emailOf(profile.email)
    if (profile.failure) throw profile.failure
    if (email === undefined) throw new ProviderEmailMissing()
    const name = nameOf(profile.name, email)
    if (!profile.isEmailProven) {
      // The response must not tell whether the address has an account, and no account may hold one that nobody has
      // proved.
      if (!client.option.signUp) throw new SignUpClosed(because('signUp is off for this provider'))
      if (!options.mailer) {
        throw new SignUpClosed(because('the provider does not prove the address (trustEmail), and no mailer can'))
      }
      const { issuer, subject } = profile
      const identity = { provider: callback.provider, issuer, subject, email }
      throw new EmailUnproven(await accounts.signUp({ name, email }, identity))
    }
    const known = await users.find(email, caller.client)
    if (known) return adopt(caller, client, profile, callback, known)
    if (!client.option.signUp) throw new SignUpClosed(because('signUp is off for this provider'))
    return startNew(caller, client, profile, callback, (inTransaction) =>
      accounts.create({ name, email }, inTransaction))
  }

  // Creates a user with the identity, and logs the user in.
  async function startNew (
    caller: Caller, client: ProviderClient, profile: Profile, callback: Callback,
    create: (inTransaction: Parameters<CreateProviderUser>[1]) => Promise<UserRow>
  ): Promise<LoggedIn> {
    let identityId: string | undefined
    const user = await create(async (trx, { id: userId }) => {
      const identity = identityOf(caller, userId, callback.provider, profile)
      if (!await insertIdentity(trx, identity)) throw new IdentityTaken()
      await audit.add(caller, { action: 'identity.add', actorId: userId, userId }, trx)
      identityId = identity.id
    })
    return start(caller, client, profile, callback, { identityId: identityId!, user })
  }

  // Creates the user of an invitation, whose address the provider must prove, whether or not it may create others.
  async function acceptInvitation (
    caller: Caller, client: ProviderClient, profile: Profile, callback: Callback, accounts: ProviderAccounts,
    invitation: string
  ): Promise<LoggedIn> {
    const email = emailOf(profile.email)
    if (profile.failure) throw profile.failure
    if (email === undefined) throw new ProviderEmailMissing()
    if (!profile.isEmailProven) throw new OtherAddress()
    const user = { name: nameOf(profile.name, email), email }
    return startNew(caller, client, profile, callback, (inTransaction) =>
      accounts.join(Buffer.from(invitation, 'base64url'), user, inTransaction))
  }

  // Links an identity to the user who has its address, and logs the user in. Only if both sides have verified the
  // address, and nothing asks for more than the provider can prove (contract 16.5).
  async function adopt (
    caller: Caller, client: ProviderClient, profile: Profile, callback: Callback, user: UserRow
  ): Promise<LoggedIn> {
    if (!user.emailVerified) throw new AccountUnverified()
    if (user.disabled) throw new AccountDisabled()
    // Nobody signs in as a service.
    if (user.kind === 'service') throw new ServiceUser()
    const identity = identityOf(caller, user.id, callback.provider, profile)
    // In the transaction that stores the session, so that a repair of the account either precedes both or voids both.
    return start(caller, client, profile, callback, { identityId: identity.id, user }, async (trx) => {
      const locked = await lockUser(trx, user.id)
      const isSame = locked !== undefined && foldEmail(locked.email) === foldEmail(user.email)
      if (!isSame || !locked.emailVerified || locked.disabled) {
        throw new LinkRequired(because('the account was changed while its owner logged in'))
      }
      // Another tab was faster.
      if (await findIdentity(trx, profile)) throw new IdentityTaken()
      // Adding a way to sign in needs the second factor, and one that the user has linked at the same provider may be
      // somebody else's.
      const { totp } = await findSecondFactors(trx, user.id)
      if (totp) throw new LinkRequired(because('the account has an authenticator app'))
      if (await hasIdentityOf(trx, user.id, profile.issuer)) {
        throw new LinkRequired(because('the account has another identity at this provider'))
      }
      await addTo(trx, caller, identity, client, { userId: user.id })
    })
  }

  async function addTo (
    trx: Database, caller: Caller, identity: ReturnType<typeof identityOf>, { name }: ProviderClient,
    owner: { userId: string, sessionId?: string }
  ): Promise<void> {
    await credentials.recordAdded(trx, caller, 'identity', { owner, provider: name })
    if (!await insertIdentity(trx, identity)) throw new IdentityTaken()
  }

  // Links an identity to the user whose session has begun the attempt.
  async function link (
    caller: Caller, client: ProviderClient, profile: Profile, { provider }: Callback, attempt: OpenedAttempt
  ): Promise<void> {
    const owner = { userId: attempt.userId!, sessionId: attempt.sessionId! }
    const found = await findIdentity(db, profile)
    if (found && found.user.id !== owner.userId) throw new IdentityTaken()
    await db.transaction().execute(async (trx) => {
      const user = await lockUser(trx, owner.userId)
      if (!user || user.disabled || !await holdSession(trx, owner)) throw new InvalidToken()
      if (found) return
      await addTo(trx, caller, identityOf(caller, owner.userId, provider, profile), client, owner)
    })
  }

  // Authenticates the user of a session once more.
  async function confirm (
    caller: Caller, client: ProviderClient, profile: Profile, { begunAt, userId, sessionId }: OpenedAttempt
  ): Promise<void> {
    const found = await findIdentity(db, profile)
    if (!found || found.user.id !== userId) throw new OtherIdentity()
    const earliest = begunAt / 1000 - AUTH_TIME_TOLERANCE_SECONDS
    if (client.reauthenticates && (profile.authTime === undefined || profile.authTime < earliest)) {
      throw new ProviderLoginStale(because(
        profile.authTime === undefined ? 'the ID token has no auth_time' : 'auth_time is before the step-up was begun'
      ))
    }
    await db.transaction().execute(async (trx) => {
      if (!await holdSession(trx, { userId, sessionId: sessionId! })) throw new InvalidToken()
      // What proves more may have been added meanwhile.
      if (!(await findStepUpProviders(trx, userId!)).includes(client.option.id)) throw new ProviderTooWeak()
      const amr = amrOf(client, profile)
      const { totp, passkeys } = await findSecondFactors(trx, userId)
      const isOwned = secondFactor.isOwned({ hasTotp: totp, hasPasskey: passkeys > 0 }, found.user)
      if (isOwned && !amr.includes(MULTI_FACTOR)) throw new SecondFactorMissing()
      if (!await stepUpSession(trx, { sessionId: sessionId!, userId, amr })) throw new InvalidToken()
      await audit.add(caller, { action: 'step-up', actorId: userId, userId, sessionId: sessionId! }, trx)
    })
  }

  return {
    /**
     * Returns the ids of the providers with which a user may step up, in the order of the options (contract 16.2).
     */
    stepUpProvidersOf: (userId: string): Promise<string[]> => findStepUpProviders(db, userId),

    /** Returns the providers, in the order of the options. */
    list: (): Provider[] => [...clients.values()].map(({ name, option: { id } }) => ({ id, name })),

    /**
     * Returns where the browser goes to log in. Throws `ProviderNotFound`, `ProviderUnavailable`, `ProviderRejected`.
     * @param browser a secret that only this browser has
     */
    begin: (provider: string, browser: string, returnTo: string | undefined): Promise<string> =>
      begin({ provider, intent: 'login', returnTo, browser }),

    /**
     * Returns where the browser goes to accept an invitation with a new account. Throws the same.
     * @param hash that of the token of the invitation
     */
    beginJoin: (provider: string, browser: string, returnTo: string | undefined, hash: Uint8Array): Promise<string> =>
      begin({
        provider, intent: 'join', returnTo, browser, invitation: Buffer.from(hash).toString('base64url'),
      }),

    /**
     * Returns where the browser goes to link an identity to the caller's account, or to authenticate the caller once
     * more. Throws the same, and `StepUpRequired`, `ProviderTooWeak`, `InvalidToken`.
     */
    async beginFor (
      caller: Caller, intent: 'link' | 'step-up', provider: string, browser: string, returnTo: string | undefined
    ): Promise<string> {
      clientOf(provider)
      if (intent === 'link') await stepUp.require(caller)
      else await requireStepUpProvider(caller.getSession().id, provider)
      await caller.confirm()
      return begin({ provider, intent, returnTo, browser, caller })
    },

    /**
     * Completes an attempt with what the provider has sent to the browser. Throws `CallbackFailure`, whatever the
     * cause.
     * @param accounts how somebody without an account gets one
     */
    async complete (caller: Caller, callback: Callback, accounts: ProviderAccounts): Promise<Completed> {
      const { address, client: connection } = caller
      let attempt: OpenedAttempt | undefined
      let charged: Awaited<ReturnType<typeof throttle.loginFromNetwork>> | undefined
      try {
        const client = clientOf(callback.provider)
        charged = await throttle.loginFromNetwork({ address, ...connection && { client: connection } })
        attempt = await attempts.open(callback.browsers, callback.response.state ?? '')
        // A response of another provider is that of an attacker (RFC 9700, 4.4).
        if (attempt?.provider !== callback.provider) throw new InvalidState()
        const profile = await redeem(client, attempt, callback)
        const { intent, returnTo, invitation } = attempt
        let loggedIn: LoggedIn | undefined
        if (invitation !== undefined) {
          loggedIn = await acceptInvitation(caller, client, profile, callback, accounts, invitation)
        } else if (intent === 'link') await link(caller, client, profile, callback, attempt)
        else if (intent === 'step-up') await confirm(caller, client, profile, attempt)
        else loggedIn = await logIn(caller, client, profile, callback, accounts)
        await charged.refund()
        counted.add(1, 'accepted')
        return { intent, returnTo, loggedIn }
      } catch (error) {
        counted.add(1, error instanceof ProviderUnavailable ? 'unavailable' : 'rejected')
        // What nobody can try many times does not count.
        const isGuess = error instanceof UsherError && (error as { statusCode?: number }).statusCode !== 503 &&
          ![ProviderDenied, ProviderMisconfigured, SecondFactorRequired, EmailUnproven]
            .some((kind) => error instanceof kind)
        if (!isGuess) charged?.refundLater()
        if (isFailedLogin(error)) {
          await audit.add(caller, { action: 'login.failed', ...attempt?.userId !== undefined && { userId: attempt.userId } })
        }
        throw new CallbackFailure(error as Error, attempt?.provider === callback.provider ? attempt : undefined)
      }
    },

    /** Returns whether the user of an attempt to link has got an identity of the provider since a time, in ms. */
    async hasLinked ({ userId, provider }: OpenedAttempt, since: number): Promise<boolean> {
      const identities = await listIdentities(db, userId!)
      return identities.some((identity) => identity.provider === provider && identity.createdAt.getTime() >= since)
    },

    /**
     * Returns the identities of a user, newest first. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`,
     * `InvalidToken`.
     */
    async listIdentities (caller: Caller, userId: string): Promise<IdentityRow[]> {
      caller.authorize('identities:list', { ownerId: userId })
      if (caller.actor?.id !== userId) await users.get(userId, caller.client)
      const identities = await listIdentities(db, userId)
      await caller.confirm()
      return identities
    },

    /**
     * Removes an identity of a user, who gets a mail. If somebody else removes it, that also ends all sessions of the
     * user and voids all links. Throws `Unauthenticated`, `Forbidden`, `StepUpRequired`, `UserNotFound`,
     * `IdentityNotFound`, `LastWayToSignIn`, `InvalidToken`.
     */
    async removeIdentity (caller: Caller, userId: string, id: string): Promise<void> {
      caller.authorize('identities:remove', { ownerId: userId })
      const actorId = caller.actor?.id ?? null
      if (actorId === userId) await stepUp.require(caller)
      else await users.get(userId, caller.client)
      sessions.markEnded(await db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user) throw actorId === userId ? new InvalidToken() : new UserNotFound()
        caller.authorizeOver(user, 'identities:remove')
        await deleteIdentity(trx, userId, id, { providers: ids, loginMail: options.loginMail })
        await credentials.recordRemoved(trx, caller, userId, 'identity')
        const ended = actorId === userId ? [] : endedOf(await repairAccount(trx, userId, 'removal-by-admin', { actorId }))
        await caller.confirm()
        return ended
      }))
    },

    /**
     * Returns the tokens of an identity for the host; undefined if none are stored. Throws `Forbidden` for anyone but
     * the host, `IdentityNotFound`.
     */
    async tokensOf (caller: Caller, userId: string, id: string): Promise<ProviderTokens | undefined> {
      if (!caller.isHost) throw new Forbidden()
      const stored = await findTokens(db, userId, id)
      if (stored === undefined) throw new IdentityNotFound()
      return stored === null ? undefined : openTokens(options, id, stored)
    },

    /**
     * Ends the sessions that a provider's logout token names, on every node. Throws `ProviderNotFound`,
     * `ProviderRejected`, `ProviderUnavailable`.
     */
    async logOut (caller: Caller, provider: string, token: string): Promise<void> {
      const { issuer, subject, sid, id, expiresAt } = await clientOf(provider).verifyLogout(token)
      const hash = createHash('sha256').update(JSON.stringify(['provider logout', issuer, id])).digest()
      const ended = await db.transaction().execute(async (trx) => {
        if (!await useCeremony(trx, { hash, expiresAt })) throw new ProviderRejected()
        return endProviderSessions(trx, { issuer, subject, sid }, caller)
      })
      sessions.markEnded(ended)
      loggedOut.add()
    },

    /** The ids of the providers: nobody can sign in with an identity of another one. */
    ids,
  }
}

const because = (reason: string) => ({ cause: new Error(reason) })

const isFailedLogin = (error: unknown): boolean =>
  [AccountDisabled, IdentityNotFound, ProviderLoginStale, ProviderRejected].some((kind) => error instanceof kind)

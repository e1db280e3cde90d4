import type { FastifyBaseLogger } from 'fastify'
import { insertResult } from '../../../db/idempotency/idempotency.ts'
import {
  deletePasskey, findPasskey, getPasskey, insertPasskey, listCredentials, listPasskeys,
  renamePasskey, useCeremony, usePasskey,
  type FoundPasskey, type PasskeyRow,
} from '../../../db/sign-in/passkeys.ts'
import { endedOf, repairAccount } from '../../../db/sign-in/repairs.ts'
import type { UsedPasskey } from '../../../db/access/sessions.ts'
import type { Database } from '../../../db/tables/index.ts'
import { lockUser } from '../../../db/users/users.ts'
import { InvalidCredentials, InvalidToken } from '../../../schema/sign-in/login.ts'
import {
  algorithms, CEREMONY_SECONDS, InvalidPasskey, MAX_PASSKEYS_PER_USER, TooManyPasskeys,
  type AuthenticationResponse, type CreationOptions, type RegistrationResponse, type RequestOptions,
} from '../../../schema/sign-in/passkeys.ts'
import { InvalidSecondFactor } from '../../../schema/sign-in/second-factor.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import type { ResultKey } from '../../../schema/http/idempotency.ts'
import { UserNotFound } from '../../../schema/users/users.ts'
import type { Audit } from '../../audit/index.ts'
import type { Core } from '../../core.ts'
import type { UserRecords } from '../../users/user-records.ts'
import type { Caller } from '../../access/caller.ts'
import type { SessionCookie } from '../../access/cookies.ts'
import type { Credentials } from '../credentials.ts'
import type { LoggedIn, LoginFunctions, SecondProof } from '../login.ts'
import type { Sessions } from '../../access/sessions.ts'
import type { SigningKeys } from '../../access/signing-keys.ts'
import type { StepUp } from '../step-up.ts'
import type { Throttle } from '../../throttle/throttle.ts'
import { createChallenges, type Challenge, type Purpose } from './challenges.ts'
import { defaultNameOf } from './default-name.ts'
import { createRelyingParty, type RelyingParty } from './relying-party.ts'
import { createVerifier, InvalidResponse } from './verifier.ts'
import type { Expected } from './verify-credential.ts'

const TIMEOUT_MS = CEREMONY_SECONDS * 1000
// RFC 8176: the possession of a key, and the presence of its user, who was verified by another factor.
const PASSKEY = ['pop', 'user', 'mfa'] as const
const REASON_CHARACTERS = 300

/** A response of an authenticator, and what it must be for. */
interface Ceremony {
  credential: AuthenticationResponse
  party: RelyingParty
  /** The browser or the session to which it belongs; any of several. */
  bindings: readonly string[]
}

/** A passkey that was proved to be that of its user. */
interface Proven extends Pick<FoundPasskey, 'user'> {
  passkey: UsedPasskey
  challenge: Challenge
}

/** Why a passkey is not accepted, which only the log says. */
class Rejected extends Error {
  readonly userId: string | undefined

  constructor (reason: string, userId?: string) {
    super(reason)
    this.userId = userId
  }
}

interface Dependencies extends Core {
  users: UserRecords
  audit: Audit
  login: LoginFunctions
  sessions: Sessions
  signingKeys: SigningKeys
  stepUp: StepUp
  throttle: Throttle
  credentials: Credentials
}

export type Passkeys = ReturnType<typeof createPasskeys>

/** Registers passkeys, and authenticates users with them (WebAuthn Level 3, contract 16.3). */
export function createPasskeys (dependencies: Dependencies) {
  const {
    database: { db, newId }, users, audit, login, sessions, stepUp, throttle, credentials, options,
  } = dependencies
  const providers = options.providers.map(({ id }) => id)
  const challenges = createChallenges(dependencies)
  const relyingParty = createRelyingParty(options)
  const verifier = createVerifier(dependencies)

  // Verifies an assertion. Throws `Rejected`.
  async function prove (
    purpose: Purpose, { credential, party, bindings }: Ceremony, log: FastifyBaseLogger
  ): Promise<Proven> {
    const text = challengeOf(credential.response.clientDataJSON)
    const challenge = await challenges.open(purpose, bindings, text)
    if (!challenge) throw new Rejected('the challenge is not one of this browser or session, or has expired')
    const found = await findPasskey(db, Buffer.from(credential.id, 'base64url'), options.userFields)
    if (!found) throw new Rejected('there is no such passkey')
    const { passkeyId: id, publicKey, user } = found
    const userHandle = credential.response.userHandle || undefined
    // Without a list of passkeys, the authenticator says whose it is (WebAuthn Level 3, 7.2, step 6).
    const isNamed = userHandle !== undefined && Buffer.from(userHandle, 'base64url').equals(handleOf(user.id))
    if (!isNamed && (purpose === 'login' || userHandle !== undefined)) {
      throw new Rejected('the passkey is that of another user', user.id)
    }
    const { counter, isSynced, backedUp } = await verifier.verifyAssertion(expect(party, text), credential, publicKey)
      .catch((error) => { throw error instanceof InvalidResponse ? new Rejected(error.message, user.id) : error })
    // Only a sign of a copy, since two logins may overtake each other (WebAuthn Level 3, 6.1.1). Synced passkeys have
    // no counter.
    if (!isSynced && (counter > 0 || Number(found.counter) > 0) && counter <= Number(found.counter)) {
      log.warn({ userId: user.id, passkeyId: id }, 'A passkey has counted backwards: there may be a copy of it')
    }
    return { user, passkey: { id, counter, backedUp }, challenge }
  }

  function rejectInvalid (error: unknown): never {
    if (!(error instanceof InvalidResponse)) throw error
    throw new InvalidInput(`credential is not valid: ${error.message.slice(0, REASON_CHARACTERS)}`)
  }

  /** Returns the options of an assertion. */
  const requestOptions = (
    purpose: Purpose, binding: string, { id: rpId }: RelyingParty, allowCredentials: RequestOptions['allowCredentials']
  ): RequestOptions => ({
    challenge: challenges.create(purpose, binding),
    timeout: TIMEOUT_MS,
    rpId,
    allowCredentials,
    userVerification: 'required',
  })

  async function descriptorsOf (userId: string): Promise<RequestOptions['allowCredentials']> {
    const credentials = await listCredentials(db, userId)
    return credentials.map(({ credentialId, transports }) =>
      ({ type: 'public-key', id: Buffer.from(credentialId).toString('base64url'), transports }))
  }

  return {
    relyingParty,

    /**
     * Returns the options with which a browser registers a passkey of the caller. Throws `StepUpRequired`,
     * `TooManyPasskeys`, `InvalidToken`.
     */
    async creationOptions (caller: Caller, party: RelyingParty): Promise<CreationOptions> {
      const { id } = caller.getActor()
      await stepUp.require(caller)
      const [user, excludeCredentials] = await Promise.all([users.read(id, caller.client), descriptorsOf(id)])
      await caller.confirm()
      if (!user) throw new InvalidToken()
      if (excludeCredentials.length >= MAX_PASSKEYS_PER_USER) throw new TooManyPasskeys()
      return {
        rp: { id: party.id, name: party.name },
        user: { id: handleOf(id).toString('base64url'), name: user.email, displayName: user.name },
        challenge: challenges.create('registration', sessionOf(caller)),
        pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
        timeout: TIMEOUT_MS,
        excludeCredentials,
        authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
        attestation: 'none',
      }
    },

    /**
     * Adds a passkey of the caller, who gets a mail with a link that removes it again. Throws `StepUpRequired`,
     * `InvalidInput`, `PasskeyExists`, `TooManyPasskeys`, `Overloaded`, `InvalidToken`, and `KeyTaken` if the key
     * `once` is taken.
     */
    async add (
      caller: Caller,
      { name, credential, party }: { name?: string | undefined, credential: RegistrationResponse, party: RelyingParty },
      once?: ResultKey
    ): Promise<PasskeyRow> {
      const { id: userId } = caller.getActor()
      await stepUp.require(caller)
      const { clientDataJSON } = credential.response
      const transports = credential.response.transports ?? []
      const text = challengeOf(clientDataJSON)
      const challenge = await challenges.open('registration', [sessionOf(caller)], text)
      if (!challenge) {
        throw new InvalidInput('credential is not the response to options of this session, or took over five minutes')
      }
      const { aaguid, isSynced, ...created } =
        await verifier.verifyRegistration(expect(party, text), credential).catch(rejectInvalid)
      const passkey = {
        ...created, id: newId(), userId, transports, name: name ?? defaultNameOf(aaguid, transports, caller.userAgent),
      }
      return db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user || user.disabled) throw new InvalidToken()
        if (once) await insertResult(trx, 'passkey', passkey.id, once)
        if (!await useCeremony(trx, challenge)) {
          throw new InvalidInput('credential was registered already: request new options')
        }
        await credentials.recordAdded(trx, caller, 'passkey')
        const added = await insertPasskey(trx, passkey)
        // Last in the transaction, because it may have waited for locks (contract 1.12).
        await caller.confirm()
        return added
      })
    },

    /** Returns a passkey of the caller. Throws `PasskeyNotFound`. */
    get: (caller: Caller, id: string): Promise<PasskeyRow> => getPasskey(db, caller.getActor().id, id),

    /**
     * Returns the passkeys of a user, newest first. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`,
     * `InvalidToken`.
     */
    async list (caller: Caller, userId: string): Promise<PasskeyRow[]> {
      caller.authorize('passkeys:list', { ownerId: userId })
      if (caller.actor?.id !== userId) await users.get(userId, caller.client)
      const passkeys = await listPasskeys(db, userId)
      await caller.confirm()
      return passkeys
    },

    /** Renames a passkey of the caller. Throws `PasskeyNotFound`, `InvalidToken`. */
    async rename (caller: Caller, id: string, name: string): Promise<PasskeyRow> {
      const { id: userId } = caller.getSession()
      return db.transaction().execute(async (trx) => {
        const renamed = await renamePasskey(trx, userId, id, name)
        await audit.add(caller, { action: 'passkey.rename' }, trx)
        await caller.confirm()
        return renamed
      })
    },

    /**
     * Removes a passkey of a user, who gets a mail. If somebody else removes it, that also ends all sessions of the
     * user and voids all links. Throws `Unauthenticated`, `Forbidden`, `StepUpRequired`, `UserNotFound`,
     * `PasskeyNotFound`, `LastWayToSignIn`, `InvalidToken`.
     */
    async remove (caller: Caller, userId: string, id: string): Promise<void> {
      caller.authorize('passkeys:remove', { ownerId: userId })
      const actorId = caller.actor?.id ?? null
      if (actorId === userId) await stepUp.require(caller)
      else await users.get(userId, caller.client)
      sessions.markEnded(await db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user) throw actorId === userId ? new InvalidToken() : new UserNotFound()
        caller.authorizeOver(user, 'passkeys:remove')
        await deletePasskey(trx, userId, id, { providers, loginMail: options.loginMail })
        await credentials.recordRemoved(trx, caller, userId, 'passkey')
        const ended = actorId === userId ? [] : endedOf(await repairAccount(trx, userId, 'removal-by-admin', { actorId }))
        await caller.confirm()
        return ended
      }))
    },

    /**
     * Returns the options with which a browser logs somebody in.
     * @param browser a secret that only this browser has
     */
    loginOptions: (party: RelyingParty, browser: string): RequestOptions => requestOptions('login', browser, party, []),

    /**
     * Logs in the user of a passkey. Throws `InvalidPasskey`, `TooManyRequests`, `Overloaded`, and what a hook of the
     * host throws.
     */
    async logIn (
      caller: Caller, { replaced, ...ceremony }: Ceremony & { replaced: SessionCookie | undefined }
    ): Promise<LoggedIn> {
      const { address, client, log } = caller
      const charged = await throttle.loginFromNetwork({ address, ...client && { client } })
      let userId: string | undefined
      try {
        const { user, passkey, challenge } = await prove('login', ceremony, log)
        userId = user.id
        if (user.disabled) throw new Rejected('the user is disabled', userId)
        const loggedIn = await login.start(caller, user, {
          amr: PASSKEY,
          passkey,
          replaced,
          async consume () {
            if (!await useCeremony(db, challenge)) throw new Rejected('the challenge was used', userId)
          },
        })
        await charged.refund()
        return loggedIn
      } catch (error) {
        // The passkey was removed, or the user was deleted or disabled, since it was looked for.
        const rejected = error instanceof InvalidCredentials
          ? new Rejected('the passkey is not valid any more', userId)
          : error
        if (!(rejected instanceof Rejected)) {
          charged.refundLater()
          throw error
        }
        log.info({ reason: rejected.message }, 'A passkey is not accepted')
        await audit.add(caller, { action: 'login.failed', userId: rejected.userId })
        throw new InvalidPasskey()
      }
    },

    /**
     * Returns the options with which a browser authenticates the user of the caller's session once more. Throws
     * `InvalidToken`.
     */
    async stepUpOptions (caller: Caller, party: RelyingParty): Promise<RequestOptions> {
      const allowed = await descriptorsOf(caller.getActor().id)
      await caller.confirm()
      return requestOptions('step-up', sessionOf(caller), party, allowed)
    },

    /**
     * Checks a passkey of a user as the second factor of a login, in the browser that has got options of a login, or as
     * another authentication of a session, for which the bindings are `[sessionOf(caller)]`. Throws
     * `InvalidSecondFactor`, `Overloaded`.
     */
    async proveFor (
      userId: string, purpose: 'login' | 'step-up', ceremony: Ceremony, log: FastifyBaseLogger
    ): Promise<SecondProof> {
      const { user, passkey, challenge } = await prove(purpose, ceremony, log).catch((error) => {
        if (!(error instanceof Rejected)) throw error
        log.info({ reason: error.message }, 'A passkey is not accepted')
        throw new InvalidSecondFactor()
      })
      if (user.id !== userId) throw new InvalidSecondFactor()
      return {
        amr: PASSKEY,
        passkey,
        async consume (trx: Database) {
          const isLeft = await usePasskey(trx, passkey) && await useCeremony(trx, challenge)
          if (!isLeft) throw new InvalidSecondFactor()
        },
      }
    },

    sessionOf,
  }
}

/** What binds a ceremony to the session of its caller. */
function sessionOf (caller: Caller): string {
  const { id, sessionId } = caller.getSession()
  return `${id} ${sessionId}`
}

const expect = ({ id: rpId, origins }: RelyingParty, challenge: string): Expected =>
  ({ challenge, origins, rpId, userVerification: true })

/** Returns the bytes by which authenticators know a user. */
const handleOf = (userId: string): Buffer => Buffer.from(userId.replaceAll('-', ''), 'hex')

// Returns the challenge that the browser has got, or an empty text. Whatever else is wrong is found by the verifier.
function challengeOf (clientDataJSON: string): string {
  let clientData: unknown
  try {
    clientData = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString())
  } catch {
    return ''
  }
  const { challenge } = (clientData ?? {}) as { challenge?: unknown }
  return typeof challenge === 'string' ? challenge : ''
}

import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { linkKinds } from '../../db/mail-links/kinds.ts'
import {
  countCodeAttempt, countStepUpAttempt, findLoginMail, findPendingCodes, insertLoginMail,
  insertStepUpMail, useLoginMail, useStepUpMail, type TriedCode,
} from '../../db/sign-in/mails.ts'
import { findSecondFactors } from '../../db/sign-in/second-factor.ts'
import { hashAddress } from '../../db/throttle/login-failures.ts'
import { lockUser } from '../../db/users/users.ts'
import { InvalidCredentials, InvalidToken } from '../../schema/sign-in/login.ts'
import { EMAIL, EmailNotVerified, InvalidLoginCode } from '../../schema/sign-in/mails.ts'
import { invalidMailToken } from '../../schema/mail-links/mail-token.ts'
import { InvalidSecondFactor, SecondFactorMissing, SecondFactorRequired } from '../../schema/sign-in/second-factor.ts'
import { TooManyRequests } from '../../schema/http/errors.ts'
import { networkOf } from '../../schema/http/network.ts'
import { foldCode } from '../../schema/strings/code.ts'
import type { Audit } from '../audit/index.ts'
import { createAfterResponse } from '../support/after-response.ts'
import type { UserRecords } from '../users/user-records.ts'
import type { Caller } from '../access/caller.ts'
import type { SessionCookie } from '../access/cookies.ts'
import { hashSecret } from '../access/secrets.ts'
import type { Credentials } from './credentials.ts'
import type { LoggedIn, LoginFunctions, SecondProof } from './login.ts'
import type { SecondFactor } from './second-factor.ts'
import type { StepUp } from './step-up.ts'
import type { Charged, Throttle } from '../throttle/throttle.ts'
import type { LinkDependencies } from '../mail-links/mail-link.ts'

// The limit of mails to one recipient (contract 11.5) is usually reached before. The links of all of these work.
const PENDING_OF_ADDRESS = 20
const CODE_DIGITS = 8
const METHODS: readonly string[] = [EMAIL]

/** The link or the code is right, but was used, or its user disabled, meanwhile. */
class Unusable extends Error {}

/** The link of a mail that works. */
export interface OpenedLoginMail {
  email: string
  /** Whether the client has requested the mail. */
  requestedHere: boolean
  /** Whether the login removes what was set up before, because nobody has verified the address. */
  removes: boolean
}

interface Dependencies extends LinkDependencies {
  audit: Audit
  credentials: Credentials
  login: LoginFunctions
  secondFactor: SecondFactor
  stepUp: StepUp
  throttle: Throttle
  users: UserRecords
}

export type LoginMails = ReturnType<typeof createLoginMails>

/**
 * Logs users in by a link or a code of a mail (contract 16.6), and lets them step up by such a code (16.2).
 *
 * The link works in any browser, for whoever reads the mailbox. The code is short, so it works only in the browser that
 * has asked for it: nobody else can try codes, or use up the attempts of the owner.
 */
export function createLoginMails ({
  lifecycle, database: { db }, telemetry: { metrics }, links, mails: { mailer, render }, audit, credentials, login,
  secondFactor, stepUp, throttle, users,
}: Dependencies) {
  const later = createAfterResponse(lifecycle, {
    full: 'A mail to log in is not sent because too many others are waiting',
    failed: 'A mail to log in could not be stored',
  })
  const { seconds: duration, pending } = linkKinds.login
  const checked = metrics.counter(
    'usher_login_mails_total', 'Links and codes of mails to log in or step up that were checked',
    { label: 'result', values: ['accepted', 'rejected'] }
  )

  async function store (caller: Caller, email: string, secret: string): Promise<void> {
    const { hash, link } = links.create('/login/mail/confirm')
    const code = createCode()
    const content = render('login', caller.languageOf(), { link, code: showCode(code), duration })
    const state = await insertLoginMail(
      db, email, {
        hash,
        bindingHash: hashSecret(secret),
        codeHash: hashCode(secret, code),
        addressHash: hashAddress(email),
        lifetime: duration,
      }, { total: pending, ofAddress: PENDING_OF_ADDRESS },
      (userId) => audit.entry(caller, { action: 'login.mail-request', userId }),
      mailer!.prepare(content, duration, { budget: 'login', hash })
    )
    if (state === 'full') caller.log.error('A mail to log in is not sent because too many others are pending')
    if (state === 'repeated') caller.log.warn('A mail to log in is not sent because its address has too many')
  }

  // Uses up a mail. Throws `Unusable`, `SecondFactorRequired`, and what a hook of the host throws.
  async function logIn (
    caller: Caller, { hash, userId }: { hash: Uint8Array, userId: string }, replaced: SessionCookie | undefined
  ): Promise<LoggedIn> {
    const user = await users.read(userId, caller.client)
    if (!user || user.disabled) throw new Unusable()
    if (user.emailVerified && (await findSecondFactors(db, userId)).totp) {
      // From now on, the challenge stands for the mail.
      throw await db.transaction().execute(async (trx) => {
        if ((await lockUser(trx, userId))?.disabled !== false || !await useLoginMail(trx, hash, userId)) {
          throw new Unusable()
        }
        return secondFactor.demand(userId, { amr: METHODS }, trx)
      })
    }
    let finishAdoption: (() => void) | undefined
    const loggedIn = await login.start(caller, { ...user, emailVerified: true }, {
      amr: METHODS,
      replaced,
      async inTransaction (trx) {
        if (!await useLoginMail(trx, hash, userId)) throw new Unusable()
        finishAdoption = await credentials.adoptUnverified(trx, caller, userId)
      },
    }).catch((error) => {
      // The user was deleted or disabled since.
      throw error instanceof InvalidCredentials ? new Unusable() : error
    })
    if (!finishAdoption) return loggedIn
    finishAdoption()
    return { ...loggedIn, user: await users.read(userId, caller.client) ?? loggedIn.user }
  }

  // Charges an attempt to the addresses of the mails of a browser. Returns those whose codes may be tried, and what was
  // charged. Throws `TooManyRequests` if there is none of them left.
  async function chargeAddresses ({ address, client }: Caller, bindings: readonly Uint8Array[], charged: Charged[]) {
    const network = networkOf(address)
    if (bindings.length === 0) return []
    const pending = await findPendingCodes(db, bindings, network)
    const byAddress = Map.groupBy(pending, ({ addressHash }) => toHex(addressHash))
    const open: Uint8Array[] = []
    let rejection: TooManyRequests | undefined
    for (const [account, mails] of byAddress) {
      const isRecognised = mails.some((mail) => mail.isRecognised)
      try {
        charged.push(await throttle.mailCode({ account, client, ...isRecognised && { network } }))
        open.push(...mails.map(({ bindingHash }) => bindingHash!))
      } catch (error) {
        if (!(error instanceof TooManyRequests)) throw error
        rejection = error
      }
    }
    if (open.length === 0 && rejection) throw rejection
    return open
  }

  // Returns the mail whose code is right, and all for which it was tried.
  async function tryCode (
    bindings: readonly Uint8Array[], secrets: readonly string[], code: string
  ): Promise<{ right: TriedCode | undefined, tried: TriedCode[] }> {
    const tried = bindings.length === 0 ? [] : await countCodeAttempt(db, bindings)
    const secretOf = new Map(secrets.map((secret) => [toHex(hashSecret(secret)), secret]))
    const [right] = tried.filter(({ bindingHash, codeHash }) =>
      timingSafeEqual(codeHash, hashCode(secretOf.get(toHex(bindingHash!))!, code)))
    return { right, tried }
  }

  return {
    /**
     * Sends a link and a code to the user of an address, if there is one. This happens after the response, which
     * therefore takes the same time whether or not there is such a user. Failures are logged. Throws `TooManyRequests`
     * for a network that asks too often.
     * @returns a secret, whatever happens. Only who presents it can use the code
     */
    async request (caller: Caller, email: string): Promise<string> {
      const { address, client } = caller
      await throttle.loginMail({ address, ...client && { client } })
      const secret = randomBytes(32).toString('base64url')
      later(caller, () => store(caller, email, secret))
      return secret
    },

    /**
     * Returns which account the token of a link logs in to, without using it. Throws `InvalidInput` if it was used, is
     * void or has expired.
     * @param secrets what `request` has returned to the client
     */
    async open (token: string, secrets: readonly string[]): Promise<OpenedLoginMail> {
      const found = await findLoginMail(db, hashSecret(token))
      if (!found) throw invalidMailToken()
      const { email, bindingHash, removes } = found
      const requestedHere = secrets.some((secret) => timingSafeEqual(hashSecret(secret), bindingHash!))
      return { email, requestedHere, removes }
    },

    /**
     * Logs in by the token of a link, once. It verifies the address, and removes what was set up before if nobody had
     * verified it. Throws `InvalidInput` if the token was used, is void or has expired, `SecondFactorRequired` with a
     * challenge, and what a hook of the host throws.
     */
    async logInByLink (caller: Caller, token: string, replaced: SessionCookie | undefined): Promise<LoggedIn> {
      const hash = hashSecret(token)
      try {
        const found = await findLoginMail(db, hash)
        if (!found) throw new Unusable()
        const loggedIn = await logIn(caller, { hash, userId: found.userId }, replaced)
        checked.add(1, 'accepted')
        return loggedIn
      } catch (error) {
        if (error instanceof SecondFactorRequired) checked.add(1, 'accepted')
        if (!(error instanceof Unusable)) throw error
        checked.add(1, 'rejected')
        throw invalidMailToken()
      }
    },

    /**
     * Logs in by the code of a mail, once, in the browser that has asked for it. Each mail allows five attempts, and
     * failures count toward the limits of the network and of the address. Throws `InvalidLoginCode`, `TooManyRequests`,
     * `SecondFactorRequired` with a challenge, and what a hook of the host throws.
     * @param secrets what `request` has returned to the browser
     */
    async logInByCode (
      caller: Caller, { code, secrets, replaced }:
      { code: string, secrets: readonly string[], replaced: SessionCookie | undefined }
    ): Promise<LoggedIn> {
      const { address, client } = caller
      const charged = [await throttle.loginFromNetwork({ address, ...client && { client } })]
      const refund = async () => { await Promise.all(charged.map((each) => each.refund())) }
      let userId: string | undefined
      try {
        const bindings = await chargeAddresses(caller, secrets.map(hashSecret), charged)
        const { right, tried } = await tryCode(bindings, secrets, code)
        userId = (right ?? tried[0])?.userId ?? undefined
        if (!right || userId === undefined) throw new Unusable()
        const loggedIn = await logIn(caller, { hash: right.hash, userId }, replaced)
        checked.add(1, 'accepted')
        await refund()
        return loggedIn
      } catch (error) {
        if (error instanceof Unusable) {
          checked.add(1, 'rejected')
          await audit.add(caller, { action: 'login.failed', userId })
          throw new InvalidLoginCode()
        }
        if (error instanceof SecondFactorRequired) {
          checked.add(1, 'accepted')
          await refund()
        } else {
          // It is not known whether the code was right.
          for (const each of charged) each.refundLater()
        }
        throw error
      }
    },

    /**
     * Sends the caller a code to step up. Throws `SecondFactorMissing` if the user has a second factor, which a mail
     * does not replace, `EmailNotVerified`, `TooManyRequests`, `InvalidToken`.
     * @returns a secret, with which the code has to be sent
     */
    async requestStepUp (caller: Caller): Promise<string> {
      const { id: userId, sessionId } = caller.getSession()
      if (await stepUp.hasSecondFactor(caller)) throw new SecondFactorMissing()
      await throttle.stepUpMail({ userId, client: caller.client })
      const [id, code] = [randomBytes(32).toString('base64url'), createCode()]
      const hash = hashSecret(id)
      const content = render('step-up', caller.languageOf(userId), { code: showCode(code), duration })
      const mail = mailer!.prepare(content, duration, { budget: 'step-up', hash })
      const state = await db.transaction().execute(async (trx) => {
        const state = await insertStepUpMail(trx, {
          userId,
          sessionId,
          hash,
          codeHash: hashCode(id, code),
          addressHash: hashSecret(userId),
          lifetime: duration,
        }, mail)
        if (state === undefined) throw new InvalidToken()
        if (state === 'unverified') throw new EmailNotVerified()
        await audit.add(caller, { action: 'step-up.mail-request' }, trx)
        await caller.confirm()
        return state
      })
      if (state === 'limited') caller.log.warn('A code to step up is not sent because its user has got too many')
      return id
    },

    /**
     * Checks the code of a mail to step up, without using it up. Wrong ones are limited per mail and per user. Throws
     * `InvalidSecondFactor`, `SecondFactorMissing`, `TooManyRequests`, `InvalidToken`.
     */
    async proveStepUp (caller: Caller, { id, code }: { id: string, code: string }): Promise<SecondProof> {
      const { id: userId, sessionId } = caller.getSession()
      if (await stepUp.hasSecondFactor(caller)) throw new SecondFactorMissing()
      const charged = await throttle.mailCode({ account: userId, client: caller.client })
      const hash = hashSecret(id)
      const expected = await countStepUpAttempt(db, { hash, userId, sessionId }).catch((error) => {
        charged.refundLater()
        throw error
      })
      const isRight = expected !== undefined && timingSafeEqual(expected, hashCode(id, code))
      checked.add(1, isRight ? 'accepted' : 'rejected')
      if (!isRight) throw new InvalidSecondFactor()
      await charged.refund()
      return {
        amr: METHODS,
        async consume (trx) {
          if (!await useStepUpMail(trx, hash)) throw new InvalidSecondFactor()
        },
      }
    },
  }
}

const createCode = (): string => `${randomInt(10 ** CODE_DIGITS)}`.padStart(CODE_DIGITS, '0')

// In groups, because people type it.
const showCode = (code: string): string => `${code.slice(0, CODE_DIGITS / 2)} ${code.slice(CODE_DIGITS / 2)}`

// With the secret, because whoever could read the hash of eight digits alone would find them at once.
const hashCode = (secret: string, code: string): Uint8Array => hashSecret(`${secret}.${foldCode(code)}`)

const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

import {
  confirmTotp, deleteTotp, findTotp, insertTotp, openTotp, sealTotp, useTotpStep, type AcceptedStep,
} from '../../../db/sign-in/totp/totp.ts'
import {
  hasRecoveryCode, replaceRecoveryCodes, useRecoveryCode,
} from '../../../db/sign-in/totp/recovery-codes.ts'
import { insertUndoToken } from '../../../db/mail-links/undo-links.ts'
import { requireLiveSession } from '../../../db/access/live-sessions.ts'
import type { Database } from '../../../db/tables/index.ts'
import { findUsers, lockUser } from '../../../db/users/users.ts'
import { InvalidToken } from '../../../schema/sign-in/login.ts'
import { InvalidSecondFactor, WrongSecondFactor } from '../../../schema/sign-in/second-factor.ts'
import { MULTI_FACTOR } from '../../../schema/access/sessions.ts'
import { TotpActive, TotpNotFound } from '../../../schema/sign-in/totp.ts'
import { InternalError } from '../../../schema/http/errors.ts'
import type { Audit } from '../../audit/index.ts'
import type { Core } from '../../core.ts'
import type { Caller } from '../../access/caller.ts'
import type { Credentials } from '../credentials.ts'
import type { LoginFunctions, SecondProof } from '../login.ts'
import type { StepUp } from '../step-up.ts'
import type { UndoLinks } from '../../mail-links/undo-links.ts'
import type { Sessions } from '../../access/sessions.ts'
import type { Throttle } from '../../throttle/throttle.ts'
import { createTotpSecret, findStep, totpUri } from './codes.ts'
import { toQrCode } from './qr-code.ts'
import { createRecoveryCodes, hashRecoveryCode } from './recovery-codes.ts'

// RFC 8176. A recovery code is a one-time password as well.
const METHODS: readonly string[] = ['otp', MULTI_FACTOR]

interface Dependencies extends Core {
  audit: Audit
  credentials: Credentials
  login: Pick<LoginFunctions, 'stepUp'>
  sessions: Pick<Sessions, 'markEnded'>
  stepUp: Pick<StepUp, 'require'>
  throttle: Pick<Throttle, 'secondFactor'>
  undoLinks: Pick<UndoLinks, 'create' | 'notifyRecoveryCodeUsed' | 'notifyRecoveryCodesCreated'>
}

/** What proves the second factor: the code of an authenticator app, or a recovery code. */
export type SecondFactorCode = { code: string } | { recoveryCode: string }

export type Totp = ReturnType<typeof createTotp>

/** Sets up authenticator apps and recovery codes, and checks and uses up their codes (contract 16.4, RFC 6238). */
export function createTotp (
  {
    database: { db, clock }, telemetry: { metrics }, options, audit, credentials, login, sessions, stepUp, throttle,
    undoLinks,
  }: Dependencies
) {
  const { productName } = options.pages
  const checked =
    metrics.counter('usher_second_factors_total', 'Codes of authenticator apps and recovery codes that were checked', {
      label: 'result', values: ['accepted', 'rejected'],
    })

  // The cause is logged and names the option. The response does not.
  function open (userId: string, stored: string): string {
    try {
      return openTotp(options, userId, stored)
    } catch (cause) {
      throw new InternalError({ cause: cause as Error })
    }
  }

  // Returns the step of a code that is accepted now, with the stored secret that it was computed from.
  async function accept (db: Database, userId: string, code: string): Promise<AcceptedStep | undefined> {
    const found = await findTotp(db, userId)
    if (!found || found.confirmedAt === null) return undefined
    const step = findStep(open(userId, found.secret), code, clock.now(), Number(found.lastStep))
    return step === undefined ? undefined : { userId, secret: found.secret, step }
  }

  async function useCode (db: Database, userId: string, code: string): Promise<boolean> {
    const accepted = await accept(db, userId, code)
    if (!accepted) return false
    if (await useTotpStep(db, accepted)) return true
    // Either the code was used by somebody else, or the same secret was encrypted anew meanwhile.
    const current = await findTotp(db, userId)
    return current !== undefined && current.secret !== accepted.secret && useCode(db, userId, code)
  }

  const useRecovery = (db: Database, userId: string, code: string): Promise<boolean> =>
    useRecoveryCode(db, userId, hashRecoveryCode(code))

  async function isCorrect (userId: string, given: SecondFactorCode): Promise<boolean> {
    if ('code' in given) return await accept(db, userId, given.code) !== undefined
    return hasRecoveryCode(db, userId, hashRecoveryCode(given.recoveryCode))
  }

  // The transaction has locked the user, as repairs of the account do.
  async function consume (trx: Database, caller: Caller, userId: string, given: SecondFactorCode): Promise<boolean> {
    if ('code' in given) return useCode(trx, userId, given.code)
    if (!await useRecovery(trx, userId, given.recoveryCode)) return false
    await audit.add(caller, { action: 'recovery-code.use', actorId: userId, userId }, trx)
    const [user] = await findUsers(trx, [userId])
    const language = caller.languageOf(userId)
    if (user) await undoLinks.notifyRecoveryCodeUsed(trx, { email: user.email, userId, language })
    return true
  }

  async function authorizeChange (caller: Caller): Promise<void> {
    caller.authorize('second-factor:change')
    await stepUp.require(caller)
  }

  async function replaceCodes (trx: Database, userId: string): Promise<string[]> {
    const codes = createRecoveryCodes()
    await replaceRecoveryCodes(trx, userId, codes.map(hashRecoveryCode))
    return codes
  }

  async function confirmIn (trx: Database, caller: Caller, code: string) {
    const { id: userId, sessionId } = caller.getSession()
    if (!await lockUser(trx, userId)) throw new InvalidToken()
    const found = await findTotp(trx, userId)
    if (!found) throw new TotpNotFound()
    if (found.confirmedAt !== null) throw new TotpActive()
    const step = findStep(open(userId, found.secret), code, clock.now(), Number(found.lastStep))
    if (step === undefined) throw new WrongSecondFactor()
    const ended = await credentials.recordAdded(trx, caller, 'totp', { endOthersThan: sessionId })
    if (!await confirmTotp(trx, { userId, secret: found.secret, step })) throw new WrongSecondFactor()
    const recoveryCodes = await replaceCodes(trx, userId)
    await caller.confirm()
    return { recoveryCodes, ended }
  }

  return {
    /**
     * Creates a secret for an authenticator app, which replaces one that was not confirmed. It has no effect until
     * `confirm`. Throws `TotpActive` if there is a confirmed one, and `InvalidToken`.
     */
    async start (caller: Caller): Promise<{ secret: string, uri: string, qrCode: string }> {
      await authorizeChange(caller)
      const { id: userId } = caller.getActor()
      const secret = createTotpSecret()
      const email = await db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user) throw new InvalidToken()
        if (!await insertTotp(trx, userId, sealTotp(options, userId, secret))) throw new TotpActive()
        await caller.confirm()
        return user.email
      })
      const uri = totpUri({ secret, issuer: productName, account: email })
      return { secret, uri, qrCode: await toQrCode(uri) }
    },

    /**
     * Makes the new secret the second factor of the actor, if the code is right: logins need a code from now on, and
     * the actor's other sessions end, because they were started without one. The actor's own session counts as
     * authenticated by both factors. Returns the recovery codes and a new token. The owner gets a mail with a link that
     * undoes it. Throws `WrongSecondFactor`, `TotpNotFound`, `TotpActive`, `InvalidToken`.
     */
    async confirm (caller: Caller, code: string): Promise<{ recoveryCodes: string[], token: string }> {
      await authorizeChange(caller)
      let confirmed: { recoveryCodes: string[], ended: string[] } | undefined
      const { token } = await login.stepUp(caller, {
        amr: METHODS,
        async consume (trx) {
          confirmed = await confirmIn(trx, caller, code)
        },
      })
      const { recoveryCodes, ended } = confirmed!
      sessions.markEnded(ended)
      return { recoveryCodes, token }
    },

    /** Removes the actor's authenticator app with the recovery codes. Throws `TotpNotFound`, `InvalidToken`. */
    async remove (caller: Caller): Promise<void> {
      await authorizeChange(caller)
      const { id: userId } = caller.getActor()
      await db.transaction().execute(async (trx) => {
        await lockUser(trx, userId)
        const wasActive = await deleteTotp(trx, userId)
        if (wasActive === undefined) throw new TotpNotFound()
        // Nobody has relied on one that was never confirmed.
        if (wasActive) await credentials.recordRemoved(trx, caller, userId, 'totp')
        await caller.confirm()
      })
    },

    /**
     * Replaces the actor's recovery codes and returns the new ones. The owner gets a mail with a link that undoes it:
     * it removes the new codes and restores those of the former ones that were not used. Throws `TotpNotFound`,
     * `InvalidToken`.
     */
    async createRecoveryCodes (caller: Caller): Promise<string[]> {
      await authorizeChange(caller)
      const { id: userId } = caller.getActor()
      return db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        // A repair of the account, for which this may have waited, has ended the session.
        await requireLiveSession(trx, caller.token)
        if (!user || !(await findTotp(trx, userId))?.confirmedAt) throw new TotpNotFound()
        const undo = undoLinks.create()
        const isUndoable = undo !== undefined && await insertUndoToken(trx, undo.hash, userId, { hasPassword: false })
        const codes = await replaceCodes(trx, userId)
        await audit.add(caller, { action: 'recovery-codes.create' }, trx)
        const recipient = { email: user.email, userId, language: caller.languageOf(userId) }
        await undoLinks.notifyRecoveryCodesCreated(trx, recipient, isUndoable ? undo : undefined)
        await caller.confirm()
        return codes
      })
    },

    /**
     * Uses up the code of an authenticator app. Returns whether it was right: it was never used, and neither was a
     * later one. Call `prove` instead where somebody may try many.
     */
    useCode,

    /** Uses up a recovery code. Returns whether it was right. Call `prove` instead where somebody may try many. */
    useRecoveryCode: useRecovery,

    /**
     * Checks a second factor without using it up. Returns how it authenticates the user (RFC 8176), and a function that
     * uses it up in a transaction, and throws `InvalidSecondFactor` if that has happened meanwhile. A user has a
     * limited number of wrong attempts, which are counted before anything is checked. Throws `InvalidSecondFactor`,
     * `TooManyRequests`.
     */
    async prove (caller: Caller, userId: string, given: SecondFactorCode): Promise<SecondProof> {
      const charged = await throttle.secondFactor({ userId, client: caller.client })
      const isRight = await isCorrect(userId, given).catch((error) => {
        // It is not known whether the code was right.
        charged.refundLater()
        throw error
      })
      checked.add(1, isRight ? 'accepted' : 'rejected')
      if (!isRight) throw new InvalidSecondFactor()
      await charged.refund()
      return {
        amr: METHODS,
        consume: async (trx: Database): Promise<void> => {
          if (!await consume(trx, caller, userId, given)) throw new InvalidSecondFactor()
        },
      }
    },
  }
}

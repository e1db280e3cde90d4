import { batchCalls, type Client } from '../../db/batching/batching.ts'
import { channelOf } from '../../db/driver/channel.ts'
import { linkKinds } from '../../db/mail-links/kinds.ts'
import {
  clearLoginFailures, countLoginFailures, deleteLowestLoginFailures, readLoginState, type LoginFailure,
} from '../../db/throttle/login-failures.ts'
import {
  charge, deleteFreeLimits, limitKey, LOGIN_OF_ACCOUNT, LOGIN_OF_ACCOUNT_AND_NETWORK, MAIL_CODE_OF_ACCOUNT, refund,
  SECOND_FACTOR_OF_ACCOUNT, type Attempt, type Limit,
} from '../../db/throttle/throttle.ts'
import { foldEmail, foldMailbox } from '../../schema/strings/address.ts'
import { TooManyRequests } from '../../schema/http/errors.ts'
import { networkOf, networksOf, type Network } from '../../schema/http/network.ts'
import { createTarpit } from './tarpit.ts'
import type { Core } from '../core.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'
import { createRecentRejections } from '../support/recent-rejections.ts'
import { createRetries } from '../support/retries.ts'

const LOGIN_OF_NETWORK = 'login.address'
const OPERATIONS = ['login', 'refresh', 'reset', 'verification', 'sign-up', 'second-factor', 'login-mail', 'invitation'] as const
const ROWS = 100_000
// In a flood on one subject, a node rejects from memory until the limit has room again, for five seconds at most.
const FLOOD = { after: 20, maxMs: 5000 }
const PURGE_SECONDS = 10
// It is not known when a locked account accepts passwords again, so `Retry-After` is an arbitrary value.
const LOCKED_RETRY_SECONDS = 3600

// A network has at most a quarter of the sign-ups, and of the mails to log in, that may be pending: this many at once,
// and as many again while those are pending.
const shareOf = ({ pending, seconds }: { pending: number, seconds: number }) =>
  ({ burst: pending / 8, perMinute: pending / 8 / (seconds / 60) })

/** Where an attempt comes from. */
interface Source {
  address: string
  /** The connection to delay before a rejection, which slows down floods. */
  client?: Client
}

/** An attempt that was permitted and charged. */
export interface Charged {
  /** Takes the charge back, because only failed attempts count. */
  refund (): Promise<void>
  /**
   * Takes the charge back once the database can be reached, because an attempt that ended before it was checked does
   * not count.
   */
  refundLater (): void
}

/** A login that was permitted. The code that checks the password reports the outcome. */
export interface LoginAttempt {
  /** Whether the owner of the account has logged in from this network before. */
  readonly isRecognised: boolean
  /** Counts a wrong password. The charge is kept from now on, even if this or anything after it fails. */
  failed (): Promise<void>
  /** Takes the charge back, and forgets earlier failures. */
  succeeded (): Promise<void>
  /** Takes the charge back later, because the attempt ended before it was checked. Has no effect after `failed`. */
  withdraw (): void
}

export type Throttle = ReturnType<typeof createThrottle>

/**
 * Limits attempts to log in, to refresh and to request password links (contract 4). They are counted in the database,
 * so that all nodes count together, and before anything expensive is done.
 */
export function createThrottle (core: Core) {
  const { lifecycle, database: { db, notifications }, telemetry: { batch, metrics }, options } = core
  const { schema, throttle, deadlines } = options
  // One statement runs at a time, because a second one would only wait for the row locks of the first.
  const inTurn = { inFlight: 1, timeoutMs: deadlines.batch }
  const countFailure = batchCalls((failures: LoginFailure[]) => countLoginFailures(db, failures), {
    ...inTurn, telemetry: batch('login-failures.count'),
  })
  const throttled = metrics.counter(
    'usher_throttled_attempts_total',
    'Attempts that were rejected because a limit is used up',
    { label: 'operation', values: OPERATIONS }
  )
  const rejections = createRecentRejections({ Rejection: TooManyRequests, ...FLOOD })
  const delay = createTarpit(lifecycle)
  const retry = createRetries(core)
  const loginOfNetwork = createNetworkLimit(LOGIN_OF_NETWORK, throttle.address)
  const loginOfAccount = createLimit(LOGIN_OF_ACCOUNT, throttle.account)
  const loginOfAccountAndNetwork = createLimit(LOGIN_OF_ACCOUNT_AND_NETWORK, throttle.account)
  const refreshOfNetwork = createNetworkLimit('refresh.address', throttle.refresh)
  const resetOfNetwork = createNetworkLimit('reset.address', throttle.reset)
  const resetOfAccount = createLimit('reset.account', throttle.reset)
  const verificationOfUser = createLimit('verification.user', throttle.reset)
  const signUpOfNetwork = createNetworkLimit('sign-up.address', throttle.signUp, shareOf(linkKinds.signUp))
  const signUpOfMailbox = createLimit('sign-up.mailbox', throttle.signUp)
  const invitationOfUser = createLimit('invitation.user', throttle.invitation)
  const invitationOfNetwork = createNetworkLimit('invitation.address', throttle.invitation)
  const secondFactorOfAccount = createLimit(SECOND_FACTOR_OF_ACCOUNT, throttle.secondFactor)
  const loginMailOfNetwork = createNetworkLimit('login-mail.address', throttle.loginMail, shareOf(linkKinds.login))
  const stepUpMailOfUser = createLimit('login-mail.user', throttle.loginMail)
  const mailCodeOfAccount = createLimit(MAIL_CODE_OF_ACCOUNT, throttle.secondFactor)
  const mailCodeOfAccountAndNetwork = createLimit('mail-code.account-and-address', throttle.secondFactor)

  // Otherwise this node would reject a password that was just set.
  notifications.listen(channelOf(schema, 'limits_cleared'), () => rejections.clear())

  /**
   * Returns a function that charges an attempt to the limit of a subject, and throws `TooManyRequests` if that is used
   * up.
   */
  function createLimit (name: string, limit: typeof throttle.account) {
    const chargeTo = createCharge(name, toLimit(limit))
    return (...subject: string[]): Promise<Charged> => chargeTo(1, ...subject)
  }

  /**
   * Returns a function that charges an attempt to the limits of the networks of an address, narrowest first, and throws
   * `TooManyRequests` if one of them is used up.
   * @param share the most that a network may have, whatever its size
   */
  function createNetworkLimit (name: string, limit: typeof throttle.account, share?: typeof throttle.account) {
    const chargeTo = createCharge(name, { ...toLimit(limit), share: share && toLimit(share) })
    return async (address: string): Promise<Charged> => {
      const networks = networksOf(address)
      throwIfAnyRejected(name, networks)
      // One after the other, so that a flood from a narrow network takes nothing from its neighbours.
      const chargeFrom = (index: number): Promise<Charged> => {
        const { name, factor } = networks[index]!
        const charging = chargeTo(factor, name)
        return index + 1 < networks.length ? both(charging, () => chargeFrom(index + 1)) : charging
      }
      return chargeFrom(0)
    }
  }

  function createCharge (name: string, limit: Limit) {
    const take = batchCalls(
      (attempts: Attempt[]) => charge(db, limit, attempts), { ...inTurn, telemetry: batch('throttle.charge') }
    )
    const putBack = batchCalls(
      (attempts: Attempt[]) => refund(db, limit, attempts), { ...inTurn, telemetry: batch('throttle.refund') }
    )

    return async (factor: number, ...subject: string[]): Promise<Charged> => {
      const key = subjectKey(name, ...subject)
      rejections.throwIfRejected(key)
      const attempt = { key: limitKey(name, subject, factor), factor }
      await take(attempt).catch((error) => {
        if (error instanceof TooManyRequests) rejections.record(key, error)
        throw error
      })
      const refund = () => putBack(attempt)
      return { refund, refundLater: () => retry(refund) }
    }
  }

  // Before any of them is charged.
  function throwIfAnyRejected (limit: string, networks: readonly Network[]): void {
    for (const { name } of networks) rejections.throwIfRejected(subjectKey(limit, name))
  }

  // Counts and delays a rejection.
  async function withTarpit<Result> (
    operation: typeof OPERATIONS[number], client: Client | undefined, charging: Promise<Result>
  ): Promise<Result> {
    try {
      return await charging
    } catch (error) {
      if (error instanceof TooManyRequests) throttled.add(1, operation)
      if (client && error instanceof TooManyRequests) await delay(client)
      throw error
    }
  }

  /** Deletes limits that have all their room again, and those beyond 100,000. Returns the number of deleted rows. */
  async function purge (): Promise<number> {
    rejections.forgetExpired()
    return deleteFreeLimits(db, { keep: ROWS, limit: PURGE_BATCH_SIZE })
  }

  purgeRegularly(lifecycle, 'limits of attempts', PURGE_SECONDS, purge)
  purgeRegularly(lifecycle, 'counts of failed logins', PURGE_SECONDS, () =>
    deleteLowestLoginFailures(db, { keep: ROWS, limit: PURGE_BATCH_SIZE }))

  return {
    /**
     * Throws `TooManyRequests` for logins from a network that floods the node, before the body of the request is read.
     */
    rejectFlood: ({ address, client }: Source): Promise<void> =>
      withTarpit('login', client, (async () => throwIfAnyRejected(LOGIN_OF_NETWORK, networksOf(address)))()),

    /**
     * Charges a login to its network and its account, before the password is checked. A recognised network has a
     * separate limit for the account, so that failures from elsewhere do not lock the owner out. After many failures in
     * a row, only recognised networks may try. It makes no difference whether there is such an account. Throws
     * `TooManyRequests`.
     */
    async login ({ email, address, client }: Source & { email: string }): Promise<LoginAttempt> {
      const account = foldEmail(email)
      const network = networkOf(address)
      let failures = 0
      let isRecognised = false
      const charged = await withTarpit('login', client, both(loginOfNetwork(address), async () => {
        const state = await readLoginState(db, { email, network })
        failures = state.failures
        isRecognised = state.recognised
        if (isRecognised) return loginOfAccountAndNetwork(account, network)
        if (failures >= throttle.consecutiveFailures) throw new TooManyRequests(LOCKED_RETRY_SECONDS)
        return loginOfAccount(account)
      }))
      let wrong = false
      return {
        isRecognised,
        failed () {
          wrong = true
          return countFailure({ email })
        },
        succeeded: async () => { await Promise.all([charged.refund(), failures > 0 && clearLoginFailures(db, email)]) },
        withdraw: () => { if (!wrong) charged.refundLater() },
      }
    },

    /**
     * Charges a login by passkey, or by the code of a mail, to its network, before it is verified. Only failures count.
     * Throws `TooManyRequests`.
     */
    loginFromNetwork: ({ address, client }: Source): Promise<Charged> => withTarpit('login', client, loginOfNetwork(address)),

    /** Forgets the rejections that this node remembers. Other nodes are notified when `clearLimits` commits. */
    forgetRejections: (): void => rejections.clear(),

    /** Charges a refresh before it is checked. Throws `TooManyRequests`. */
    refresh: ({ address, client }: Source): Promise<Charged> =>
      withTarpit('refresh', client, refreshOfNetwork(address)),

    /**
     * Charges a request for a link to set a password, whether or not there is such an account. Throws
     * `TooManyRequests`.
     */
    async reset ({ email, address, client }: Source & { email: string }): Promise<void> {
      await withTarpit('reset', client, both(resetOfNetwork(address), () => resetOfAccount(foldEmail(email))))
    },

    /**
     * Charges a request for a link to verify an address to the user who asks. It is not charged to the address: others
     * could use up its limit. The limits of mails protect who gets them (contract 11.5). Throws `TooManyRequests`.
     */
    async verification ({ userId, client }: { userId: string, client: Client | undefined }): Promise<void> {
      await withTarpit('verification', client, verificationOfUser(userId))
    },

    /** Charges a sign-up, whether or not there is such an account. Throws `TooManyRequests`. */
    async signUp ({ email, address, client }: Source & { email: string }): Promise<void> {
      await withTarpit('sign-up', client, both(signUpOfNetwork(address), () => signUpOfMailbox(foldMailbox(email))))
    },

    /**
     * Charges an attempt to prove the second factor of a user, before the code is checked. Take the charge back if it
     * was right. Throws `TooManyRequests`.
     */
    secondFactor: ({ userId, client }: { userId: string, client: Client | undefined }): Promise<Charged> =>
      withTarpit('second-factor', client, secondFactorOfAccount(userId)),

    /** Charges an invitation to an organisation to a network and the user who invites. Throws `TooManyRequests`. */
    async invitation ({ userId, address, client }: Source & { userId: string }): Promise<void> {
      await withTarpit('invitation', client, both(invitationOfNetwork(address), () => invitationOfUser(userId)))
    },

    /** Charges a request for a mail to log in, whatever its address. Throws `TooManyRequests`. */
    async loginMail ({ address, client }: Source): Promise<void> {
      await withTarpit('login-mail', client, loginMailOfNetwork(address))
    },

    /** Charges a request for a code to step up. Throws `TooManyRequests`. */
    async stepUpMail ({ userId, client }: { userId: string, client: Client | undefined }): Promise<void> {
      await withTarpit('login-mail', client, stepUpMailOfUser(userId))
    },

    /**
     * Charges an attempt at the code of a mail, before it is compared. A recognised network has a separate limit, so
     * that failures from elsewhere do not lock the owner out. Take the charge back if the code was right. Throws
     * `TooManyRequests`.
     * @param account the user, or the hash of an address that may belong to none
     * @param network that of the client if it is recognised
     */
    mailCode: (
      { account, network, client }: { account: string, network?: string, client: Client | undefined }
    ): Promise<Charged> => withTarpit('login-mail', client, network === undefined
      ? mailCodeOfAccount(account)
      : mailCodeOfAccountAndNetwork(account, network)),

    purge,
  }
}

const subjectKey = (...subject: string[]): string => subject.join(' ')

const toLimit = ({ burst, perMinute }: { burst: number, perMinute: number }): Limit =>
  ({ burst, interval: 60e6 / perMinute })

// Charges two limits. If the second one is used up, the charge on the first is taken back.
async function both (charging: Promise<Charged>, chargeNext: () => Promise<Charged>): Promise<Charged> {
  const first = await charging
  try {
    const second = await chargeNext()
    return {
      refund: async () => { await Promise.all([first.refund(), second.refund()]) },
      refundLater () {
        first.refundLater()
        second.refundLater()
      },
    }
  } catch (error) {
    if (error instanceof TooManyRequests) await first.refund()
    else first.refundLater()
    throw error
  }
}

import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { batchCalls, type Client } from '../../db/batching.ts'
import { clearLoginFailures, countLoginFailures, deleteLowestLoginFailures, deleteUnusedNetworks, foldEmail, readLoginState, type LoginFailure } from '../../db/login-failures.ts'
import { charge, deleteFreeLimits, refund, type Attempt } from '../../db/throttle.ts'
import { TooManyRequests } from '../../schema/errors.ts'
import { networkOf } from '../../schema/network.ts'
import { createTarpit } from './tarpit.ts'
import { purgeRegularly, ROWS_A_PURGE } from '../purge.ts'
import { createRetries } from '../retries.ts'

const LOGIN_OF_ADDRESS = 'login.address'
const ROWS = 100_000
const PURGE_SECONDS = 10
const PURGE_NETWORKS_SECONDS = 3600
// Nobody can say when the account accepts a password again.
const LOCKED_RETRY_SECONDS = 3600
// Refusals, after which the database is not asked before it would let somebody through, or for so long.
const FLOOD = 20
const RECALL_MS = 5000

declare module 'fastify' {
  interface FastifyInstance {
    usherThrottle: ReturnType<typeof createThrottle>
  }
}

/** Where an attempt comes from. */
interface Source {
  address: string
  /** Whom to keep waiting before a refusal: what floods has little of it then. */
  client?: Client
}

/** What was let through. */
export interface Charged {
  /** Takes the charge back: only what fails is to count. */
  succeeded (): Promise<void>
  /** Takes the charge back as soon as the database can be reached: an attempt that ended before it was checked does not count. */
  withdraw (): void
}

/** A login that was let through; whoever checks the password tells what came of it. */
export interface LoginAttempt extends Charged {
  /** Counts a wrong password. The charge stays from now on, also if this or anything after it fails. */
  failed (): Promise<void>
}

function createThrottle (app: FastifyInstance) {
  const { usherDatabase: { db }, usherOptions: { throttle } } = app
  const countFailure = batchCalls((failures: LoginFailure[]) => countLoginFailures(db, failures), { inFlight: 1 })
  // In a flood, of which one says nothing of the next, the node knows for a while by heart whom it has refused.
  const refused = new Map<string, { times: number, retryAfter: number, until: number }>()
  const hold = createTarpit(app)
  const retry = createRetries(app)
  const loginOfAddress = createLimit(LOGIN_OF_ADDRESS, throttle.address)
  const loginOfAccount = createLimit('login.account', throttle.account)
  const loginOfBoth = createLimit('login.account-and-address', throttle.account)
  const refreshOfAddress = createLimit('refresh.address', throttle.refresh)
  const resetOfAddress = createLimit('reset.address', throttle.reset)
  const resetOfAccount = createLimit('reset.account', throttle.reset)

  /** A limit for each of some subjects. It charges an attempt, and throws `TooManyRequests` where there is no room. */
  function createLimit (name: string, { burst, perMinute }: typeof throttle.account) {
    const limit = { burst, interval: Math.round(60e6 / perMinute) }
    // One statement at a time: another would only wait for its rows.
    const take = batchCalls((attempts: Attempt[]) => charge(db, limit, attempts), { inFlight: 1 })
    const putBack = batchCalls((attempts: Attempt[]) => refund(db, limit, attempts), { inFlight: 1 })

    return async (...subject: string[]): Promise<Charged> => {
      recall(name, ...subject)
      const key = `${name} ${createHash('sha256').update(subject.join(' ')).digest('hex')}`
      await take({ key }).catch((error) => {
        if (error instanceof TooManyRequests) remember(error, name, ...subject)
        throw error
      })
      const succeeded = () => putBack({ key })
      return { succeeded, withdraw: () => retry(succeeded) }
    }
  }

  function recall (...subject: string[]): void {
    const key = subject.join(' ')
    const known = refused.get(key)
    if (!known || known.times < FLOOD) return
    if (performance.now() < known.until) throw new TooManyRequests(known.retryAfter)
    refused.delete(key)
  }

  function remember ({ retryAfter }: TooManyRequests, ...subject: string[]): void {
    const key = subject.join(' ')
    const times = (refused.get(key)?.times ?? 0) + 1
    refused.set(key, { times, retryAfter, until: performance.now() + Math.min(RECALL_MS, retryAfter * 1000) })
  }

  async function slowly<Result> (client: Client | undefined, charging: Promise<Result>): Promise<Result> {
    try {
      return await charging
    } catch (error) {
      if (client && error instanceof TooManyRequests) await hold(client)
      throw error
    }
  }

  return {
    /** Refuses the logins of an address that floods, before anything is read of them. Throws `TooManyRequests`. */
    refuseFlood: ({ address, client }: Source): Promise<void> => slowly(client, (async () => recall(LOGIN_OF_ADDRESS, networkOf(address)))()),

    /**
     * Charges a login before it is checked: to its network, and to its account. A network that the owner of the account
     * has logged in from has a limit of its own there, so that failures from elsewhere do not keep the owner out. After
     * many failures in a row only such networks are let through. Whether there is such an account makes no difference.
     * Throws `TooManyRequests`.
     */
    async login ({ email, address, client }: Source & { email: string }): Promise<LoginAttempt> {
      const account = foldEmail(email)
      const network = networkOf(address)
      let failures = 0
      const charged = await slowly(client, both(loginOfAddress(network), async () => {
        const state = await readLoginState(db, { email, network })
        failures = state.failures
        if (state.recognised) return loginOfBoth(account, network)
        if (failures >= throttle.consecutiveFailures) throw new TooManyRequests(LOCKED_RETRY_SECONDS)
        return loginOfAccount(account)
      }))
      let wrong = false
      return {
        failed () {
          wrong = true
          return countFailure({ email })
        },
        succeeded: async () => { await Promise.all([charged.succeeded(), failures > 0 && clearLoginFailures(db, email)]) },
        withdraw: () => { if (!wrong) charged.withdraw() },
      }
    },

    /** Charges a refresh before it is checked. Throws `TooManyRequests`. */
    refresh: ({ address, client }: Source): Promise<Charged> => slowly(client, refreshOfAddress(networkOf(address))),

    /** Charges a request for a link to set a password, whether or not there is such an account. Throws `TooManyRequests`. */
    async reset ({ email, address, client }: Source & { email: string }): Promise<void> {
      await slowly(client, both(resetOfAddress(networkOf(address)), () => resetOfAccount(foldEmail(email))))
    },

    /** Deletes what means nothing any more: how many rows. */
    async purge (): Promise<number> {
      refused.clear()
      return deleteFreeLimits(db, { keep: ROWS, limit: ROWS_A_PURGE })
    },

    /** Deletes the counts of failures that are too many to keep. Returns their number. */
    purgeFailures (): Promise<number> {
      return deleteLowestLoginFailures(db, { keep: ROWS, limit: ROWS_A_PURGE })
    },

    /** Deletes networks that were not used for as long as the audit log is kept. Returns their number. */
    purgeNetworks (): Promise<number> {
      return deleteUnusedNetworks(db, { seconds: app.usherOptions.auditSeconds, limit: ROWS_A_PURGE })
    },
  }
}

// What the second refuses costs nothing of the first.
async function both (charging: Promise<Charged>, chargeNext: () => Promise<Charged>): Promise<Charged> {
  const first = await charging
  try {
    const second = await chargeNext()
    return {
      succeeded: async () => { await Promise.all([first.succeeded(), second.succeeded()]) },
      withdraw () {
        first.withdraw()
        second.withdraw()
      },
    }
  } catch (error) {
    if (error instanceof TooManyRequests) await first.succeeded()
    else first.withdraw()
    throw error
  }
}

/** How often somebody may try (contract 4): counted in the database, so that all nodes count together, and before anything costs. */
export default fp(async function throttle (app) {
  app.decorate('usherThrottle', createThrottle(app))
  purgeRegularly(app, 'limits of attempts', PURGE_SECONDS, app.usherThrottle.purge)
  purgeRegularly(app, 'counts of failed logins', PURGE_SECONDS, app.usherThrottle.purgeFailures)
  purgeRegularly(app, 'recognised networks', PURGE_NETWORKS_SECONDS, app.usherThrottle.purgeNetworks)
}, { name: 'usher-throttle', dependencies: ['usher-database'] })

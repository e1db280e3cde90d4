import { hash } from '@node-rs/argon2'
import {
  forgetPasswordKinds, listPasswordKinds, openSignerKey, type PasswordKind,
} from '../../../db/sign-in/password-kinds.ts'
import type { Client } from '../../../db/batching/batching.ts'
import { ClientDisconnected, DatabaseUnavailable } from '../../../schema/http/errors.ts'
import { normalizePassword } from '../../../schema/sign-in/passwords/passwords.ts'
import {
  impossibleHash, LOGIN_LIMITS, parseHash, UnsupportedHash, workOf, type StoredHash,
} from '../../../schema/sign-in/passwords/stored-hash.ts'
import type { Options } from '../../../schema/options/options.ts'
import { MAX_CONCURRENT_HASHES, MINIMUM_KIB } from '../../../schema/options/password-hash.ts'
import { networksOf } from '../../../schema/http/network.ts'
import type { Core } from '../../core.ts'
import { FairQueue } from '../../support/fair-queue.ts'
import { purgeRegularly } from '../../support/purge.ts'
import type { Caller } from '../../access/caller.ts'
import { checkHash, doWork, remainingWork } from './check-hash.ts'

const WAITING = 200
const PURGE_SECONDS = 3600

const argon2id = ({ memoryKiB, passes }: Options['passwordHash']) =>
  ({ memoryCost: memoryKiB, timeCost: passes, parallelism: 1 })

/** Hashes a password without waiting in the queue, for commands. */
export const hashPassword = (password: string, cost: Options['passwordHash']): Promise<string> =>
  hash(normalizePassword(password), argon2id(cost))

/** Returns the kind of the hashes that are made at a cost: see `kind` in `schema/sign-in/passwords/stored-hash.ts`. */
export const kindOfNewHashes = ({ memoryKiB, passes }: Options['passwordHash']): string =>
  `$argon2id$v=19$m=${memoryKiB},t=${passes},p=1$`

/** What is known about a hash that a password has matched. */
export interface PasswordMatch {
  /**
   * Whether the password must be hashed again: the hash has another algorithm or weaker parameters than new ones, or is
   * that of the password as it was typed, as other systems make it.
   */
  isOutdated: boolean
}

/** Who has sent a password that is hashed or checked. */
export interface Hashing {
  client?: Client | undefined
  address?: string
  /**
   * Whether the sender has a session, the token of a mail, or logs in from a recognised network. Anybody can send all
   * other requests.
   */
  isKnown?: boolean
}

/** Returns who has sent the password of a request. Callers with a token, and the host, are known. */
export const hashingOf = ({ client, address, actor, isHost }: Caller): Hashing =>
  ({ client, address, isKnown: actor !== null || isHost })

/** Throws `BreachedPassword` if a password, in the form that is hashed, has appeared in a breach. */
export type RejectBreached = (password: string, hashing: Hashing) => Promise<void>

export type Passwords = ReturnType<typeof createPasswords>

/**
 * Hashes passwords with argon2id, and checks them against hashes of that and of other systems (contract 16.7), in a
 * bounded pool, so that logins do not slow down other requests (contract 4).
 */
export function createPasswords (
  { lifecycle, database: { breaker, db }, telemetry: { metrics }, options }: Core, rejectBreached: RejectBreached
) {
  const { log } = lifecycle
  const { passwordHash: cost } = options
  const parameters = argon2id(cost)
  const { memoryCost, timeCost } = parameters
  const ownKind = kindOfNewHashes(cost)
  // A hash that no password has. Checking it takes as long as checking any other of its kind.
  const impossible = impossibleHash(ownKind)
  if (memoryCost * timeCost < MINIMUM_KIB) {
    log.info({ passwordHash: cost }, 'The option passwordHash is weaker than recommended: use it for tests only')
  }
  // Jobs beyond the bound are rejected.
  const pool = new FairQueue({ concurrency: MAX_CONCURRENT_HASHES, maxWaiting: WAITING })
  const hashed = metrics.counter('usher_password_hashes_total', 'Passwords that were hashed or checked')
  metrics.gauge('usher_password_hashes_pending', 'Passwords that wait to be hashed or checked', () => pool.waiting)
  purgeRegularly(lifecycle, 'kinds of password hashes', PURGE_SECONDS, async () => {
    while (await forgetPasswordKinds(db) > 0);
    return 0
  })
  const reported = new Set<string>()

  // Says once what is wrong with hashes. Their users cannot log in, and a request must not fill the log.
  function report (problem: string, err?: unknown): void {
    if (reported.has(problem)) return
    reported.add(problem)
    log.error({ err }, problem)
  }

  // Returns the hash of a user, or undefined if there is none that can be checked.
  function read (passwordHash: string | null | undefined): StoredHash | undefined {
    if (passwordHash === null || passwordHash === undefined) return undefined
    try {
      return parseHash(passwordHash, LOGIN_LIMITS)
    } catch (error) {
      if (!(error instanceof UnsupportedHash)) throw error
      report(`A stored password hash ${error.message}. Its user needs a new password`)
      return undefined
    }
  }

  // Returns whether a hash has another algorithm or weaker parameters than new ones.
  const isOutdated = (hash: StoredHash): boolean =>
    hash.family !== 'argon2' || hash.variant !== 'argon2id' || hash.version !== 19 ||
    hash.memoryKiB < memoryCost || hash.passes < timeCost

  function signerKeyOf ({ kind }: StoredHash, kinds: readonly PasswordKind[]): Buffer | undefined {
    const stored = kinds.find((one) => one.kind === kind)?.signerKey
    if (stored === undefined || stored === null) {
      report('Hashes of Firebase cannot be checked without the signer key of their project: import them with --again')
      return undefined
    }
    try {
      return openSignerKey(options, kind, stored)
    } catch (err) {
      report('The signer key of a Firebase project cannot be decrypted: secret must be the one it is encrypted with', err)
      return undefined
    }
  }

  // Those who are known and all others take turns, so that nobody, from however many networks, keeps users from logging
  // in. Within both, so do new passwords and those that are checked, so that guessing passwords keeps nobody from
  // signing up. Within these, the widest networks take turns, and the narrowest ones of each.
  async function run<Result> (
    purpose: 'new' | 'checked', job: () => Promise<Result>, { client, address = '', isKnown = false }: Hashing
  ): Promise<Result> {
    const networks = networksOf(address)
    return pool.run([`${isKnown}`, purpose, networks.at(-1)!.name, networks[0]!.name], async () => {
      if (client?.destroyed) throw new ClientDisconnected()
      // The result could not be used without the database. Jobs that wait for their turn fail in time.
      if (!breaker.closed) throw new DatabaseUnavailable()
      hashed.add()
      return job()
    })
  }

  const hashInTurn = (password: string, hashing: Hashing): Promise<string> =>
    run('new', () => hash(normalizePassword(password), parameters), hashing)

  return {
    /**
     * Hashes a password that a user has or that was generated, without looking it up among breached ones. Throws
     * `Overloaded` if too many jobs wait, `DatabaseUnavailable`, and `ClientDisconnected` if the client has
     * disconnected before its turn.
     */
    hash: (password: string, hashing: Hashing = {}): Promise<string> => hashInTurn(password, hashing),

    /**
     * Hashes a password that somebody has chosen. Throws what `hash` throws, and `BreachedPassword` if it has appeared
     * in a breach (contract 23.1). That depends on the password only, so it tells nothing about accounts.
     */
    async hashChosen (password: string, hashing: Hashing = {}): Promise<string> {
      await rejectBreached(normalizePassword(password), hashing)
      return hashInTurn(password, hashing)
    },

    /**
     * Returns what is known about a hash that a password matches, or undefined if it does not. Every failure takes the
     * same work, with whatever hash, or without one: one check of each kind of hash that there is. How many forms of
     * the password are tried depends on the password only. Throws `Overloaded`, `DatabaseUnavailable`,
     * `ClientDisconnected`.
     */
    async verify (
      password: string, passwordHash: string | null | undefined, hashing: Hashing
    ): Promise<PasswordMatch | undefined> {
      const normalized = normalizePassword(password)
      const forms = normalized === password ? [normalized] : [normalized, password]
      const stored = read(passwordHash)
      const isFirebase = stored?.family === 'scrypt' && stored.firebase !== undefined
      let kinds = isFirebase ? await listPasswordKinds(db) : undefined
      const signerKey = isFirebase ? signerKeyOf(stored, kinds!) : undefined
      const checked = stored ?? impossible
      for (const form of forms) {
        const bytes = Buffer.from(form)
        const matches = await run('checked', () => checkHash(checked, bytes, signerKey), hashing)
        if (matches && stored) return { isOutdated: form !== normalized || isOutdated(stored) }
        // They are read at each failure, because an import adds some at any time. A match need not know them.
        kinds ??= await listPasswordKinds(db)
        const rest = remainingWork([ownKind, ...kinds.map(({ kind }) => kind)], workOf(checked))
        if (rest.length > 0) await run('checked', () => doWork(rest, bytes), hashing)
      }
      return undefined
    },
  }
}

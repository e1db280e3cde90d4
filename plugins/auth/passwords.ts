import { hash, verify } from '@node-rs/argon2'
import fastq from 'fastq'
import type { Client } from '../../db/batching/batching.ts'
import { ClientDisconnected, DatabaseUnavailable, Overloaded } from '../../schema/http/errors.ts'
import { normalizePassword } from '../../schema/auth/password.ts'
import type { Options } from '../../schema/options/options.ts'
import { MAX_CONCURRENT_HASHES, MINIMUM_KIB } from '../../schema/options/password-hash.ts'
import type { Core } from '../core.ts'

const WAITING = 200

const argon2id = ({ memoryKiB, passes }: Options['passwordHash']) =>
  ({ memoryCost: memoryKiB, timeCost: passes, parallelism: 1 })

/** Hashes a password without waiting in the queue, for commands. */
export const hashPassword = (password: string, cost: Options['passwordHash']): Promise<string> =>
  hash(normalizePassword(password), argon2id(cost))

/** What is known about a hash that a password has matched. */
export interface PasswordMatch {
  /**
   * Whether the password must be hashed again: the hash has weaker parameters than new ones, or is that of the password
   * as it was typed, from before passwords were normalized.
   */
  isOutdated: boolean
}

export type Passwords = ReturnType<typeof createPasswords>

/**
 * Hashes and checks passwords with argon2id, in a bounded pool, so that logins do not slow down other requests
 * (contract 4).
 */
export function createPasswords (
  { lifecycle: { log }, database: { breaker }, telemetry: { metrics }, options: { passwordHash: cost } }: Core
) {
  const parameters = argon2id(cost)
  const { memoryCost, timeCost, parallelism } = parameters
  // A hash that no password has. Checking it takes as long as any other check, because the time depends on the
  // parameters only.
  const impossible = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`
  if (memoryCost * timeCost < MINIMUM_KIB) {
    log.info({ passwordHash: cost }, 'The option passwordHash is weaker than recommended: use it for tests only')
  }
  // Jobs beyond the bound are rejected.
  const pool = fastq.promise((job: () => Promise<unknown>) => job(), MAX_CONCURRENT_HASHES)
  const hashed = metrics.counter('usher_password_hashes_total', 'Passwords that were hashed or checked')
  metrics.gauge('usher_password_hashes_pending', 'Passwords that wait to be hashed or checked', () => pool.length())

  // Returns whether a hash has weaker parameters than new ones.
  function isWeak (passwordHash: string): boolean {
    const [, memory, passes] = /\$m=(\d+),t=(\d+),/.exec(passwordHash)!
    return Number(memory) < memoryCost || Number(passes) < timeCost
  }

  async function run<Result> (job: () => Promise<Result>, client: Client | undefined): Promise<Result> {
    if (pool.length() >= WAITING) throw new Overloaded()
    return await pool.push(async () => {
      if (client?.destroyed) throw new ClientDisconnected()
      // The result could not be used without the database. Jobs that wait for their turn fail in time.
      if (!breaker.closed) throw new DatabaseUnavailable()
      hashed.add()
      return job()
    }) as Result
  }

  return {
    /**
     * Hashes a password. Throws `Overloaded` if too many jobs wait, `DatabaseUnavailable`, and `ClientDisconnected` if
     * the client has disconnected before its turn.
     */
    hash: (password: string, client?: Client): Promise<string> =>
      run(() => hash(normalizePassword(password), parameters), client),

    /**
     * Returns what is known about a hash that a password matches, or undefined if it does not. Without a hash this
     * takes the same time and returns undefined: how many forms of the password are tried depends on the password only.
     * Throws `Overloaded`, `DatabaseUnavailable`, `ClientDisconnected`.
     */
    async verify (
      password: string, passwordHash: string | null | undefined, client: Client
    ): Promise<PasswordMatch | undefined> {
      const normalized = normalizePassword(password)
      const forms = normalized === password ? [normalized] : [normalized, password]
      for (const form of forms) {
        const matches = await run(() => verify(passwordHash ?? impossible, form), client)
        if (matches && passwordHash != null) return { isOutdated: form !== normalized || isWeak(passwordHash) }
      }
      return undefined
    },
  }
}

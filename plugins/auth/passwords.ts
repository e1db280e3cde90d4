import { availableParallelism } from 'node:os'
import { hash, verify } from '@node-rs/argon2'
import type { FastifyInstance } from 'fastify'
import fastq from 'fastq'
import fp from 'fastify-plugin'
import type { Client } from '../../db/batching.ts'
import { ClientGone, DatabaseUnavailable, Overloaded } from '../../schema/errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherPasswords: ReturnType<typeof createPasswords>
  }
}

// OWASP's least for argon2id, the library's default: 19 MiB, two passes, one lane.
const argon2id = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 }
const WAITING = 200

// No password's hash, for a check that costs what any other does: it is the parameters that cost.
const nobodys = `$argon2id$v=19$m=${argon2id.memoryCost},t=${argon2id.timeCost},p=${argon2id.parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`

/** Hashes a password at once: for a command, which nobody else waits for. */
export const hashPassword = (password: string): Promise<string> => hash(password, argon2id)

function createPasswords ({ usherDatabase: { breaker } }: FastifyInstance) {
  // A core stays free for the event loop; beyond the bound a login is told to come back.
  const pool = fastq.promise((job: () => Promise<unknown>) => job(), Math.max(1, availableParallelism() - 1))

  async function run<Result> (job: () => Promise<Result>, client: Client | undefined): Promise<Result> {
    if (pool.length() >= WAITING) throw new Overloaded()
    return await pool.push(async () => {
      if (client?.destroyed) throw new ClientGone()
      // What would come of it has nowhere to go: those that wait for their turn are told so in time.
      if (!breaker.closed) throw new DatabaseUnavailable()
      return job()
    }) as Result
  }

  return {
    /** Hashes a password to be set, for a client that may go. Throws `Overloaded`, `ClientGone`. */
    hash: (password: string, client?: Client): Promise<string> => run(() => hashPassword(password), client),

    /**
     * Checks a password, for a client that may go; without a hash to check it against this takes the same time.
     * Throws `Overloaded`, `ClientGone`.
     */
    async verify (password: string, passwordHash: string | null | undefined, client: Client): Promise<boolean> {
      const matches = await run(() => verify(passwordHash ?? nobodys, password), client)
      return matches && passwordHash != null
    },

    /** Whether a hash was made with parameters that have grown since: to be made again when its password is at hand. */
    isOutdated (passwordHash: string): boolean {
      const [, memoryCost, timeCost] = /\$m=(\d+),t=(\d+),/.exec(passwordHash)!
      return Number(memoryCost) < argon2id.memoryCost || Number(timeCost) < argon2id.timeCost
    },
  }
}

/** Passwords: argon2id on a bounded pool, so that logins leave the rest of the node fast (contract 4). */
export default fp(async function passwords (app) {
  app.decorate('usherPasswords', createPasswords(app))
}, { name: 'usher-passwords', dependencies: ['usher-database'] })

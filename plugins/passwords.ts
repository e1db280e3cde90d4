import { availableParallelism } from 'node:os'
import { hash, verify } from '@node-rs/argon2'
import fastq from 'fastq'
import fp from 'fastify-plugin'
import { Overloaded } from '../schema/errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherPasswords: Awaited<ReturnType<typeof createPasswords>>
  }
}

// OWASP's least for argon2id, the library's default: 19 MiB, two passes, one lane.
const argon2id = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 }
const WAITING = 200

async function createPasswords () {
  // A core stays free for the event loop; beyond the bound a login is told to come back.
  const pool = fastq.promise((job: () => Promise<unknown>) => job(), Math.max(1, availableParallelism() - 1))
  const nobodys = await hash('the password of nobody', argon2id)

  async function run<Result> (job: () => Promise<Result>): Promise<Result> {
    if (pool.length() >= WAITING) throw new Overloaded()
    return await pool.push(job) as Result
  }

  return {
    /** Hashes a password to be set. Throws `Overloaded`. */
    hash: (password: string): Promise<string> => run(() => hash(password, argon2id)),

    /** Checks a password; without a hash to check it against this takes the same time. Throws `Overloaded`. */
    async verify (password: string, passwordHash: string | null | undefined): Promise<boolean> {
      const matches = await run(() => verify(passwordHash ?? nobodys, password))
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
  app.decorate('usherPasswords', await createPasswords())
}, { name: 'usher-passwords' })

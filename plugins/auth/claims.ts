import type { UserRow } from '../../db/tables.ts'
import { checkClaims, noClaims, type ActorClaims } from '../../schema/claims.ts'
import { InternalError } from '../../schema/errors.ts'
import type { UsherUser } from '../../schema/user.ts'
import type { Core } from '../core.ts'

export type Claims = ReturnType<typeof createClaims>

/** Asks the option `claims` for what to add to the tokens of a user (contract 12.3). */
export function createClaims ({ options: { claims: claimsOf, userFields, deadlines } }: Pick<Core, 'options'>) {
  return {
    /**
     * Returns the host's claims for a user's next token. Throws `InternalError`, whose cause is logged, if the host's function fails, takes
     * more than `deadlines.claims`, or returns anything that a token cannot have. There must be no token without them then.
     */
    async of (user: UserRow): Promise<ActorClaims> {
      if (!claimsOf) return noClaims
      try {
        return checkClaims(await inTime(async () => claimsOf(copy(user)), deadlines.claims))
      } catch (thrown) {
        throw new InternalError({ cause: explain(thrown) })
      }
    },
  }

  // The row may be shared with other requests, and may have the password hash.
  function copy (row: UserRow): UsherUser {
    const { id, name, email, emailVerified, role, disabled, createdAt, updatedAt } = row
    const fields = userFields.map(({ name }) => [name, (row as unknown as Record<string, unknown>)[name]] as const).filter(([, value]) => value != null)
    const user = { id, name, email, emailVerified, role, disabled, createdAt, updatedAt, ...Object.fromEntries(fields) }
    return structuredClone(user) as unknown as UsherUser
  }
}

async function inTime<Result> (run: () => Promise<Result>, timeoutMs: number): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`usher: claims has not returned within ${timeoutMs / 1000} seconds`)), timeoutMs)
  try {
    return await Promise.race([run(), late])
  } finally {
    clearTimeout(timer)
  }
}

function explain (thrown: unknown): Error {
  const isOurs = thrown instanceof Error && thrown.message.startsWith('usher: ')
  return isOurs ? thrown : new Error('usher: claims has failed', { cause: thrown })
}

import { copyRow } from '../../db/tables/row.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { checkClaims, noClaims, reservedClaims, type ActorClaims } from '../../schema/access/claims.ts'
import { InternalError } from '../../schema/http/errors.ts'
import { inTime } from '../../schema/runtime/in-time.ts'
import { withoutEmpty } from '../../schema/fields/fields.ts'
import type { UsherUser } from '../../schema/users/users.ts'
import type { Core } from '../core.ts'

export type Claims = ReturnType<typeof createClaims>

/** Asks the option `claims` for what to add to the tokens of a user (contract 12.3). */
export function createClaims ({ options }: Pick<Core, 'options'>) {
  const { claims: claimsOf, userFields, deadlines } = options
  const reserved = reservedClaims(options)

  return {
    /**
     * Returns the host's claims for a user's next token. Throws `InternalError`, whose cause is logged, if the host's
     * function fails, takes more than `deadlines.claims`, or returns anything that a token cannot have. There must be
     * no token without them then.
     */
    async of (user: UserRow): Promise<ActorClaims> {
      if (!claimsOf) return noClaims
      try {
        return checkClaims(await inTime((async () => claimsOf(copy(user)))(), deadlines.claims, isLate), reserved)
      } catch (thrown) {
        throw new InternalError({ cause: explain(thrown) })
      }
    },
  }

  // The row may be shared with other requests.
  function copy (row: UserRow): UsherUser {
    return copyRow(withoutEmpty(userFields, row))
  }

  function isLate (): Error {
    return new Error(`usher: claims has not returned within ${deadlines.claims / 1000} seconds`)
  }
}

function explain (thrown: unknown): Error {
  const isOurs = thrown instanceof Error && thrown.message.startsWith('usher: ')
  return isOurs ? thrown : new Error('usher: claims has failed', { cause: thrown })
}

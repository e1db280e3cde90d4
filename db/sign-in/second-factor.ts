import { sql, type ExpressionBuilder } from 'kysely'
import type { Database, Tables } from '../tables/index.ts'

/** The SQLSTATE of a session that a trigger has refused, because its user has a second factor that was not used. */
export const SECOND_FACTOR_MISSING = 'US2FA'

/** Returns a condition: the user whose id is in this column has a confirmed authenticator app. */
export const hasTotp = (
  { exists, selectFrom }: Pick<ExpressionBuilder<Tables, never>, 'exists' | 'selectFrom'>, column: string
) => exists(selectFrom('totp').select('totp.user_id').where('totp.user_id', '=', sql.ref<string>(column))
  .where('totp.confirmed_at', 'is not', null)).$castTo<boolean>()

/** What a user has besides a password. */
export interface SecondFactors {
  /** Whether codes of an authenticator app are active, so that every login needs a second factor. */
  totp: boolean
  recoveryCodes: number
  passkeys: number
}

/** Returns which second factors a user has. */
export async function findSecondFactors (db: Database, userId: string): Promise<SecondFactors> {
  return db.selectNoFrom(({ exists, selectFrom }) => [
    exists(selectFrom('totp').select('user_id').where('user_id', '=', userId).where('confirmed_at', 'is not', null))
      .$castTo<boolean>().as('totp'),
    selectFrom('recovery_codes').select(sql<number>`count(*)::int`.as('count')).where('user_id', '=', userId)
      .where('replaced_at', 'is', null)
      .$asScalar().$notNull().as('recoveryCodes'),
    selectFrom('passkeys').select(sql<number>`count(*)::int`.as('count')).where('user_id', '=', userId)
      .$asScalar().$notNull().as('passkeys'),
  ]).executeTakeFirstOrThrow()
}

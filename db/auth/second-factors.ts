import { sql } from 'kysely'
import type { Database } from '../tables/index.ts'

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
      .$asScalar().$notNull().as('recoveryCodes'),
    selectFrom('passkeys').select(sql<number>`count(*)::int`.as('count')).where('user_id', '=', userId)
      .$asScalar().$notNull().as('passkeys'),
  ]).executeTakeFirstOrThrow()
}

import { sql, type RawBuilder } from 'kysely'
import type { Match } from '../../schema/http/entity-tag.ts'
import { PreconditionFailed } from '../../schema/http/errors.ts'
import { EmailTaken, UserNotFound } from '../../schema/users/users.ts'
import type { Database } from '../tables/index.ts'
import { findUsersByEmail } from './users.ts'

/** Returns the versions that a row may have; null if it may have any. */
export const versionsOf = (match: Match): readonly string[] | null =>
  match === undefined || match === '*' ? null : match

/** Returns a condition: a row has one of the versions, unless it may have any. Both arguments are expressions. */
export const hasVersion = (version: RawBuilder<unknown>, versions: RawBuilder<unknown>) =>
  sql<boolean>`coalesce(${version} = any(${versions}::bigint[]), true)`

/**
 * Returns why a change of a user has matched no row: the user does not exist, or has another version. In the second
 * case, a new address that is taken comes first (contract 1.7).
 */
export async function whyUnchanged (db: Database, id: string, email: string | null | undefined): Promise<Error> {
  const user = await db.selectFrom('users').select('id').where('id', '=', id).executeTakeFirst()
  if (!user) return new UserNotFound()
  const [holder] = email == null ? [] : await findUsersByEmail(db, [email])
  return holder && holder.id !== id.toLowerCase() ? new EmailTaken() : new PreconditionFailed()
}

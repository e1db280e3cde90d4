import { sql } from 'kysely'
import { MULTI_FACTOR } from '../../schema/access/sessions.ts'
import { hasTotp } from './second-factor.ts'
import { inOrder } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'
import { seconds, type Authentication } from '../access/sessions.ts'

/** How a live session was authenticated, and what its user has. */
export interface SessionAuthentication {
  id: string
  /** Whether the user was authenticated within the given time. */
  isRecent: boolean
  amr: string[]
  /** Whether the user has a confirmed authenticator app. */
  hasTotp: boolean
  hasPasskey: boolean
}

/**
 * Returns how sessions were authenticated, in the order of `ids`: undefined for one that has ended.
 * @param maxAge for how many seconds an authentication is recent
 */
export async function findAuthentications (
  db: Database, ids: readonly string[], maxAge: number
): Promise<(SessionAuthentication | undefined)[]> {
  const rows = await db.selectFrom('sessions').where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .where('expires_at', '>', sql<Date>`now()`)
    .select((query) => [
      'id',
      sql<boolean>`auth_time > now() - ${seconds(maxAge)}`.as('isRecent'),
      sql<string[]>`to_json(amr)`.as('amr'),
      hasTotp(query, 'sessions.user_id').as('hasTotp'),
      query.exists(query.selectFrom('passkeys').select('passkeys.id').whereRef('passkeys.user_id', '=', 'sessions.user_id'))
        .$castTo<boolean>().as('hasPasskey'),
    ]).execute()
  return inOrder(ids, rows)
}

/**
 * Records that the user of a session was authenticated once more, now. Returns how the session is authenticated from
 * now on, and when it expires, or undefined if it has ended, the user is disabled, the password is no longer
 * `passwordHash`, or the user has a second factor and `amr` lacks `mfa`.
 * @param amr how, which is added to what the session has (RFC 8176)
 */
export async function stepUpSession (
  db: Database, { sessionId, userId, amr, passwordHash }:
  { sessionId: string, userId: string, amr: readonly string[], passwordHash?: string | undefined }
): Promise<Authentication & { expiresAt: Date } | undefined> {
  return db
    .with('owner', (cte) => cte.selectFrom('users').select('id').where('id', '=', userId).where('disabled', '=', false)
      .$if(passwordHash !== undefined, (query) => query.where('password_hash', '=', passwordHash!))
      .$if(!amr.includes(MULTI_FACTOR), (query) =>
        query.where((condition) => condition.not(hasTotp(condition, 'users.id'))))
      .forShare())
    .updateTable('sessions').from('owner').whereRef('user_id', '=', 'owner.id')
    .set({
      auth_time: sql<Date>`now()`,
      amr: sql<string[]>`array(select distinct unnest(amr || ${amr}::text[]) order by 1)`,
    })
    .where('sessions.id', '=', sessionId).where('expires_at', '>', sql<Date>`now()`)
    .returning([sql<string[]>`to_json(amr)`.as('amr'), sql<Date>`auth_time`.as('authTime'), 'expires_at as expiresAt'])
    .executeTakeFirst()
}

import { insertAuditEntries } from '../../audit/audit.ts'
import { anyOf } from '../../driver/postgres.ts'
import { actorValue, sessionEndOf, withEvents } from '../../outbox/store.ts'
import type { ClientInfo } from '../../access/sessions.ts'
import type { Database } from '../../tables/index.ts'

/** Whom a provider logs out: all sessions of a subject, one session of the provider, or one of that subject. */
export interface ProviderLogout { issuer: string, subject: string | undefined, sid: string | undefined }

/**
 * Ends the sessions that were started by an identity of the issuer, those that were opened with their tokens, and the
 * logins by it that wait for their second factor, and writes that to the account log. Call it in a transaction. Returns
 * the ids of the ended sessions.
 * @param origin the client of the request, which is the provider
 */
export async function endProviderSessions (
  trx: Database, { issuer, subject, sid }: ProviderLogout, { address, userAgent }: ClientInfo
): Promise<string[]> {
  const statement = trx
    .with('meant', (cte) => cte.selectFrom('identities').select(['identities.id', 'identities.user_id'])
      .where('issuer', '=', issuer)
      .$if(subject !== undefined, (query) => query.where('subject', '=', subject!))
      // Otherwise all identities of the issuer would be read.
      .$if(subject === undefined, (query) => query.where(({ or, eb, selectFrom }) => or([
        eb('identities.id', 'in', selectFrom('sessions').select('sessions.identity_id').where('sessions.provider_sid', '=', sid!)
          .$narrowType<{ identity_id: string }>()),
        eb('identities.id', 'in', selectFrom('login_challenges').select('login_challenges.identity_id')
          .where('login_challenges.provider_sid', '=', sid!).$narrowType<{ identity_id: string }>()),
      ]))))
    .with('waiting', (cte) => cte.deleteFrom('login_challenges').using('meant')
      .whereRef('login_challenges.user_id', '=', 'meant.user_id').whereRef('identity_id', '=', 'meant.id')
      .$if(sid !== undefined, (query) => query.where('provider_sid', '=', sid!)))
    .with('started', (cte) => cte.deleteFrom('sessions').using('meant')
      .whereRef('sessions.user_id', '=', 'meant.user_id').whereRef('identity_id', '=', 'meant.id')
      .$if(sid !== undefined, (query) => query.where('provider_sid', '=', sid!))
      .returning(['sessions.id', 'sessions.user_id']))
    .with('derived', (cte) => cte.deleteFrom('sessions')
      .where('parent_id', '=', ({ selectFrom }) => anyOf(selectFrom('started').select('id'))).returning(['id', 'user_id']))
    .with('ended', (cte) => cte.selectFrom('started').select(['id', 'user_id'])
      .unionAll(cte.selectFrom('derived').select(['id', 'user_id'])))
  const ended = await withEvents(
    statement, trx, 'session.ended', { from: 'ended', ...sessionEndOf(actorValue(null)) }
  ).selectFrom('ended').select(['ended.id', 'ended.user_id as userId']).execute()
  await insertAuditEntries(trx, ended.map(({ id, userId }) =>
    ({ action: 'session.end', actorId: null, userId, sessionId: id, keyId: null, address, userAgent })))
  return ended.map(({ id }) => id)
}

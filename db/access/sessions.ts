import { sql } from 'kysely'
import { InvalidCredentials, InvalidToken } from '../../schema/sign-in/login.ts'
import { SecondFactorRequired } from '../../schema/sign-in/second-factor.ts'
import { networkOf } from '../../schema/http/network.ts'
import type { ActorOrganization } from '../../schema/options/policy.ts'
import type { Role } from '../../schema/users/users.ts'
import { noFields } from '../../schema/users/user-fields.ts'
import { auditColumns } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { newId } from '../driver/ids.ts'
import { anyOf, hasSqlState, violates } from '../driver/postgres.ts'
import { SECOND_FACTOR_MISSING } from '../sign-in/second-factor.ts'
import { sessionEndOf, withEvents } from '../outbox/store.ts'
import type { Row } from '../tables/row.ts'
import type { Database, UserRow } from '../tables/index.ts'
import { userColumns } from '../users/columns.ts'
import type { SessionsTable } from '../tables/access.ts'
import { membershipIn } from './memberships.ts'

// A rotated cookie still works for this long, for browser tabs that refresh at the same time and for responses that
// were lost.
const GRACE_SECONDS = 10
// When a user opens one more session, the oldest one ends.
const MAX_SESSIONS_PER_USER = 100
const ROTATIONS_REMEMBERED = 32
// When a user logs in from one more network, the least recently used one is deleted.
const MAX_NETWORKS_PER_USER = 100

/** How long a session lives: `sessionIdleSeconds` without a refresh, and `sessionSeconds` in any case. */
export interface Lifetime { sessionIdleSeconds: number, sessionSeconds: number }

/** The client that uses a session. */
export interface ClientInfo { address: string, userAgent: string }

/** A passkey that was used, with what its authenticator has said. */
export interface UsedPasskey { id: string, counter: number, backedUp: boolean }

/** An identity at a provider that was used, and the provider's own session, if it says which. */
export interface UsedIdentity { id: string, sid: string | undefined }

export interface NewSession extends ClientInfo {
  userId: string
  /** How the user was authenticated (RFC 8176). */
  amr: readonly string[]
  /** The hash against which the password was checked, if it was. If it was changed since, no session is created. */
  passwordHash?: string | undefined
  /**
   * The passkey that the user has presented, as it is after its use. If it was removed meanwhile, no session is
   * created.
   */
  passkey?: UsedPasskey | undefined
  /**
   * The identity at a provider that the user has logged in with. If it was removed meanwhile, no session is created.
   */
  identity?: UsedIdentity | undefined
  /** When the user was authenticated, if not now. */
  authTime?: Date | undefined
  /** Whether it is a session of the console. */
  isConsole?: boolean | undefined
  /** The session whose token opens this one. When that ends, this one does, too. */
  parentId?: string | undefined
  secretHash: Uint8Array
  rotationKey: Uint8Array
  /** The session that the new one replaces, if it is live and its secret has this hash. */
  replaced?: { id: string, secretHash: Uint8Array } | undefined
}

/** Returns an SQL interval of `count` seconds. */
export const seconds = (count: number) => sql`make_interval(secs => ${count})`

/**
 * Creates a session, ends the one that it replaces, and writes both to the account log, as one statement. From now on
 * the client's network is recognised. Returns the session's id, its expiry, the user's current role, when the user was
 * authenticated, and the ids of the sessions that it has ended.
 *
 * The statement locks the user's row. If a concurrent change demotes, disables or deletes the user, or sets another
 * password, it therefore takes place either before the statement, or after it and ends the new session. Throws
 * `InvalidCredentials`, and changes nothing, if the user was deleted or disabled, the password was changed, or the
 * passkey or the identity removed, meanwhile, `InvalidToken` if the session `parentId` has ended, and
 * `SecondFactorRequired` if the user has a second factor and `amr` lacks `mfa`.
 */
export async function insertSession (
  db: Database,
  {
    userId, amr, passwordHash, passkey, identity, authTime, isConsole = false, parentId, secretHash, rotationKey,
    address, userAgent, replaced,
  }: NewSession,
  { sessionIdleSeconds, sessionSeconds }: Lifetime
): Promise<{ id: string, role: Role, expiresAt: Date, authTime: Date, endedIds: string[] }> {
  const id = newId(db)
  const network = networkOf(address)
  const statement = db
    .with('permitted', (cte) => cte.selectFrom('users').select(['id', 'role'])
      .where('id', '=', userId).where('disabled', '=', false)
      .$if(passwordHash !== undefined, (query) => query.where('password_hash', '=', passwordHash!)).forShare())
    // An update, because it finds out that the passkey was removed while the statement waited for the lock on the user.
    .with('passkey', (cte) => cte.updateTable('passkeys').from('permitted')
      .set({
        counter: sql<string>`greatest(counter, ${passkey?.counter ?? 0}::bigint)`,
        backed_up: passkey?.backedUp ?? false,
        last_used_at: sql<Date>`now()`,
      })
      .whereRef('user_id', '=', 'permitted.id').where('passkeys.id', '=', passkey?.id ?? null)
      .returning('passkeys.id'))
    .with('identity', (cte) => cte.updateTable('identities').from('permitted').set({ last_used_at: sql<Date>`now()` })
      .whereRef('user_id', '=', 'permitted.id').where('identities.id', '=', identity?.id ?? null)
      .returning('identities.id'))
    .with('owner', (cte) => cte.selectFrom('permitted').select(['id', 'role'])
      .$if(identity !== undefined, (query) =>
        query.where(({ exists, selectFrom }) => exists(selectFrom('identity').select('id'))))
      .$if(passkey !== undefined, (query) =>
        query.where(({ exists, selectFrom }) => exists(selectFrom('passkey').select('id')))))
    // Skips the sessions that another login is ending at the moment.
    .with('oldest', (cte) => cte.selectFrom('sessions').select('id').where('id', 'in', ({ selectFrom }) =>
      selectFrom('sessions').select('id').where('user_id', '=', userId)
        .orderBy('created_at', 'desc').orderBy('id', 'desc').offset(MAX_SESSIONS_PER_USER - 1))
      .where('id', 'is distinct from', parentId ?? null)
      .where(({ exists, selectFrom }) => exists(selectFrom('owner').select('id'))).forUpdate().skipLocked())
    .with('evicted', (cte) => cte.deleteFrom('sessions')
      .where('id', 'in', ({ selectFrom }) => selectFrom('oldest').select('id')).returning(['id', 'user_id']))
    .with('replaced', (cte) => cte.deleteFrom('sessions')
      .where('id', '=', replaced?.id ?? null).where('secret_hash', '=', replaced?.secretHash ?? null)
      .where('expires_at', '>', sql<Date>`now()`)
      .where(({ exists, selectFrom }) => exists(selectFrom('owner').select('id')))
      .returning(['id', 'user_id']))
    .with('derived', (cte) => cte.deleteFrom('sessions').where('parent_id', '=', ({ selectFrom }) => anyOf(
      selectFrom('evicted').select('id').unionAll(selectFrom('replaced').select('id')))).returning(['id', 'user_id']))
    .with('ended', (cte) => cte.selectFrom('evicted').select(['id', 'user_id'])
      .unionAll(cte.selectFrom('replaced').select(['id', 'user_id']))
      .unionAll(cte.selectFrom('derived').select(['id', 'user_id'])))
    .with('noted_end', (cte) => cte.insertInto('audit').columns(auditColumns)
      .expression(({ selectFrom, val }) => selectFrom('replaced').select([
        val(newId(db)).as('entry'), sql.lit('session.end').as('action'), val(userId).as('actor'),
        'replaced.user_id as user', 'replaced.id as session', val(address).as('address'), val(userAgent).as('agent'),
      ])).returning(entryColumns))
    .with('noted', (cte) => cte.insertInto('audit').columns(auditColumns)
      .expression(({ selectFrom, val }) => selectFrom('owner').select([
        val(newId(db)).as('entry'), sql.lit('login').as('action'), 'owner.id as actor', 'owner.id as user',
        val(id).as('session'), val(address).as('address'), val(userAgent).as('agent'),
      ])).returning(entryColumns))
    .with('recognised', (cte) => cte.insertInto('recognised_networks').columns(['user_id', 'network'])
      .expression(({ selectFrom, val }) => selectFrom('owner').select(['owner.id', val(network).as('network')])
        // The host may start a session without saying where.
        .$if(passwordHash === undefined && network === '', (query) => query.where(sql<boolean>`false`)))
      .onConflict((conflict) => conflict.columns(['user_id', 'network']).doUpdateSet({ last_used_at: sql`now()` })))
    .with('unused', (cte) => cte.selectFrom('recognised_networks')
      .select('network').where('user_id', '=', userId).where('network', 'in', ({ selectFrom }) =>
        selectFrom('recognised_networks').select('network').where('user_id', '=', userId)
          .where('network', '<>', network)
          .orderBy('last_used_at', 'desc').offset(MAX_NETWORKS_PER_USER - 1)).forUpdate().skipLocked())
    .with('forgotten', (cte) => cte.deleteFrom('recognised_networks').where('user_id', '=', userId)
      .where('network', 'in', ({ selectFrom }) => selectFrom('unused').select('network')))
  const started = { userId: 'owner.id', sessionId: sql`${id}::uuid`, actorId: 'owner.id' }
  const noted = withEntryEvents(statement, db, ['noted_end', 'noted'])
  const ending = withEvents(noted, db, 'session.ended', { from: 'ended', ...sessionEndOf(sql`${userId}::uuid`) })
  return withEvents(ending, db, 'session.started', { from: 'owner', subject: 'owner.id', data: started })
    .insertInto('sessions')
    .columns([
      'id', 'user_id', 'secret_hash', 'rotation_key', 'address', 'user_agent', 'amr', 'auth_time',
      'identity_id', 'provider_sid', 'is_console', 'parent_id', 'expires_at',
    ])
    .expression(({ selectFrom, val }) => selectFrom('owner').select([
      val(id).as('session'), 'owner.id', val(secretHash).as('secret'), val(rotationKey).as('rotation'),
      val(address).as('address'), val(userAgent).as('agent'), sql<string[]>`${amr}::text[]`.as('amr'),
      sql<Date>`coalesce(${authTime ?? null}::timestamptz, now())`.as('authenticated'), val(identity?.id ?? null).as('identity'),
      val(identity?.sid ?? null).as('sid'), val(isConsole).as('console'), val(parentId ?? null).as('parent'),
      sql<Date>`least(now() + ${seconds(Math.min(sessionIdleSeconds, sessionSeconds))}, ${
        selectFrom('sessions').select('expires_at').where('id', '=', parentId ?? null)})`.as('expires'),
    ]))
    .returning(['id', 'expires_at as expiresAt', 'auth_time as authTime',
      ({ selectFrom }) => selectFrom('owner').select('role').$asScalar().$notNull().as('role'),
      // The driver reads arrays as text, and JSON as arrays.
      sql<string[]>`to_json(array(select id from ended))`.as('endedIds')])
    .executeTakeFirstOrThrow(() => new InvalidCredentials())
    .catch((error) => {
      if (violates(db, error, 'sessions', 'sessions_parent_id_fkey')) throw new InvalidToken()
      throw hasSqlState(error, SECOND_FACTOR_MISSING) ? new SecondFactorRequired() : error
    })
}

/** How and when the user of a session was authenticated. */
export interface Authentication {
  /** RFC 8176. */
  amr: string[]
  authTime: Date
}

// The driver reads arrays as text, and JSON as arrays.
const authentication = [sql<string[]>`to_json(sessions.amr)`.as('amr'), 'sessions.auth_time as authTime'] as const

export type FoundSession = Authentication & Row<SessionsTable, 'rotation_key' | 'rotations' | 'expires_at'> & {
  /** The number of rotations within the grace period. */
  recentRotations: number
  user: UserRow
  /** The membership of the user in the organisation that was asked for; null without one. */
  organization: ActorOrganization | null
}

/**
 * Returns the live session with this id and hash of the secret, together with its user and the membership in an
 * organisation, or undefined if there is none.
 */
export async function findSession (
  db: Database,
  { id, secretHash, organizationId }: { id: string, secretHash: Uint8Array, organizationId?: string | undefined },
  fields = noFields
): Promise<FoundSession | undefined> {
  const row = await db.selectFrom('sessions').innerJoin('users', 'users.id', 'sessions.user_id')
    // The names have underscores, which names of fields cannot have.
    .select([
      'sessions.rotation_key', 'sessions.rotations as session_rotations', 'sessions.expires_at',
      sql<number>`(select count(*)::int from unnest(sessions.rotated_at) as at where at > now() - ${seconds(GRACE_SECONDS)})`
        .as('recent_rotations'),
    ])
    .select([
      sql<string[]>`to_json(sessions.amr)`.as('session_amr'), 'sessions.auth_time',
      membershipIn(organizationId).as('session_organization'),
    ])
    .select(userColumns(fields))
    .where('sessions.id', '=', id).where('sessions.secret_hash', '=', secretHash)
    .where('sessions.expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst()
  if (!row) return undefined
  const {
    rotation_key: rotationKey, session_rotations: rotations, expires_at: expiresAt, recent_rotations: recentRotations,
    session_amr: amr, auth_time: authTime, session_organization: organization, ...user
  } = row
  return { rotationKey, rotations, expiresAt, recentRotations, amr, authTime, user, organization }
}

/** A session for another of its tokens. */
export type SessionOfToken = Authentication & Pick<FoundSession, 'user' | 'organization'> & { expiresAt: Date }

/**
 * Returns the live session with this id, together with its user and the membership in an organisation as stored now, or
 * undefined if there is none.
 */
export async function findSessionOfToken (
  db: Database, { id, organizationId }: { id: string, organizationId: string | undefined }, fields = noFields
): Promise<SessionOfToken | undefined> {
  const row = await db.selectFrom('sessions').innerJoin('users', 'users.id', 'sessions.user_id')
    // The names have underscores, which names of fields cannot have.
    .select([
      'sessions.expires_at', 'sessions.auth_time', sql<string[]>`to_json(sessions.amr)`.as('session_amr'),
      membershipIn(organizationId).as('session_organization'),
    ])
    .select(userColumns(fields))
    .where('sessions.id', '=', id).where('sessions.expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst()
  if (!row) return undefined
  const {
    expires_at: expiresAt, session_amr: amr, auth_time: authTime, session_organization: organization, ...user
  } = row
  return { expiresAt, amr, authTime, user, organization }
}

/** A session of the console, with its user. */
export type FoundConsoleSession = Authentication & { expiresAt: Date, user: UserRow }

/** Returns the live session of the console with this id and hash of the secret, or undefined if there is none. */
export async function findConsoleSession (
  db: Database, { id, secretHash }: { id: string, secretHash: Uint8Array }, fields = noFields
): Promise<FoundConsoleSession | undefined> {
  const row = await db.selectFrom('sessions').innerJoin('users', 'users.id', 'sessions.user_id')
    // The names have underscores, which names of fields cannot have.
    .select(['sessions.expires_at', 'sessions.auth_time', sql<string[]>`to_json(sessions.amr)`.as('session_amr')])
    .select(userColumns(fields))
    .where('sessions.id', '=', id).where('sessions.secret_hash', '=', secretHash).where('sessions.is_console', '=', true)
    .where('sessions.expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst()
  if (!row) return undefined
  const { expires_at: expiresAt, session_amr: amr, auth_time: authTime, ...user } = row
  return { expiresAt, amr, authTime, user }
}

/**
 * Counts a rotation. Returns the session's new expiry, or undefined if the session has ended or was rotated meanwhile.
 */
export async function rotateSession (
  db: Database, { id, rotations, address, userAgent }: ClientInfo & { id: string, rotations: number },
  { sessionIdleSeconds, sessionSeconds }: Lifetime
): Promise<Date | undefined> {
  const row = await db.updateTable('sessions')
    .set({
      rotations: rotations + 1,
      rotated_at: sql`(rotated_at || now())[cardinality(rotated_at) + 2 - ${sql.lit(ROTATIONS_REMEMBERED)}:]`,
      last_used_at: sql`now()`,
      expires_at: sql`least(created_at + ${seconds(sessionSeconds)}, now() + ${seconds(sessionIdleSeconds)})`,
      address,
      user_agent: userAgent,
    })
    .where('id', '=', id).where('rotations', '=', rotations).where('expires_at', '>', sql<Date>`now()`)
    .returning('expires_at as expiresAt').executeTakeFirst()
  return row?.expiresAt
}

export type SessionRow = Authentication & {
  /** Whether it is a session of the console. */
  console: boolean
} & Row<SessionsTable, 'id' | 'created_at' | 'last_used_at' | 'expires_at' | 'address' | 'user_agent'>

/**
 * Returns the live sessions of a user, newest first: at most 100, and as many more as logins of that user ran at the
 * same time.
 */
export async function listSessionsOf (db: Database, userId: string): Promise<SessionRow[]> {
  return db.selectFrom('sessions')
    .select([
      'id', 'created_at as createdAt', 'last_used_at as lastUsedAt', 'expires_at as expiresAt', 'address',
      'user_agent as userAgent', 'is_console as console',
    ])
    .select(authentication)
    .where('user_id', '=', userId).where('expires_at', '>', sql<Date>`now()`)
    .orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

/** Returns the live sessions of all users, newest first. */
export async function listSessions (db: Database, limit: number): Promise<(SessionRow & { userId: string })[]> {
  return db.selectFrom('sessions')
    .select([
      'user_id as userId', 'id', 'created_at as createdAt', 'last_used_at as lastUsedAt', 'expires_at as expiresAt',
      'address', 'user_agent as userAgent', 'is_console as console',
    ])
    .select(authentication)
    .where('expires_at', '>', sql<Date>`now()`).orderBy('created_at', 'desc')
    .orderBy('id', 'desc').limit(limit).execute()
}

/** Returns the id of the user who has a live session, or undefined if there is no such session. */
export async function findSessionOwner (db: Database, id: string): Promise<string | undefined> {
  const row = await db.selectFrom('sessions').select('user_id as userId')
    .where('id', '=', id).where('expires_at', '>', sql<Date>`now()`).executeTakeFirst()
  return row?.userId
}

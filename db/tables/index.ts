import type { Generated, GeneratedAlways, Kysely, Selectable, Transaction } from 'kysely'
import type { Members, Role, ShownMember, UserKind } from '../../schema/users/members.ts'
import type { Row } from './row.ts'
import type {
  ApiKeysTable, EmailTokensTable, EndedSessionsTable, IdentitiesTable, LoginChallengesTable, LoginFailuresTable,
  LoginMailsTable, PasskeysTable, PasswordKindsTable, PasswordTokensTable, RecognisedNetworksTable, RecoveryCodesTable,
  SessionsTable, SignUpsTable, SigningKeysTable, ThrottleTable, TotpTable, UndoTokensTable, UsedCeremoniesTable,
  UserImportsTable,
} from './auth.ts'
import type {
  CurrentEpochView, DeletedUsersTable, PositionSequence, PostsTable, ReplicaMarksTable, ResumableUploadsTable,
  UploadLinksTable, UploadsTable,
} from './content.ts'
import type { IdempotencyKeysTable } from './idempotency.ts'
import type { EventConsumersTable, FailedDeliveriesTable, MailLimitsTable, OutboxTable } from './outbox.ts'
import type { PostRatesTable, UploadUsageTable } from './quotas.ts'

/** A user. `email` is unique, regardless of case. */
export interface UsersTable {
  id: string
  name: string
  email: string
  role: Role
  /** It never changes. A service user has no password and no sessions. No field of a host has a name like this. */
  account_kind: Generated<UserKind>
  /**
   * argon2id in PHC format, or what was imported (`schema/sign-in/passwords/stored-hash.ts`); null for a user who has
   * no password yet.
   */
  password_hash: string | null
  /** Whether a link that was sent to the current address was used. */
  email_verified: Generated<boolean>
  /** When the address was changed last; null if it never was. */
  email_changed_at: Generated<Date | null>
  /** Whether an admin has disabled the user. */
  disabled: Generated<boolean>
  /** Whether the user has a confirmed authenticator app. A trigger on `totp` sets it. */
  has_app: GeneratedAlways<boolean>
  created_at: Generated<Date>
  updated_at: Generated<Date>
  /** Every update changes it; a bigint, which is read as text. See `renew_row_version` in `db/migrations/0001.ts`. */
  row_version: GeneratedAlways<string>
}

/** The public data of a user. At runtime it also has the fields of the host (`db/users/columns.ts`). */
export type UserRow =
  { [Name in ShownMember]: Selectable<UsersTable>[Members[Name]['column']] } & Row<UsersTable, 'row_version'>

/** An entry of the account log: who did what and when. It remains when the users it refers to are deleted. */
export interface AuditTable {
  /** A UUIDv7, so ids are in order of time. */
  id: string
  /** For example `login` or `password.change`. */
  action: string
  /** The id of the user who did it; null if unknown. */
  actor_id: string | null
  /**
   * The id of the user whose account was affected; null if there is none, as for a failed login with an unknown
   * address.
   */
  user_id: string | null
  session_id: string | null
  /** The API key with which the actor did it; null without one. */
  key_id: string | null
  address: string
  user_agent: string
  created_at: Generated<Date>
}

/** How many entries of an action the account log has got on a day (UTC). See `db/admin/counts.ts`. */
export interface AuditCountsTable {
  /** A date, such as 2026-11-27. */
  day: string
  action: string
  /** A bigint, which is read as text. */
  count: string
}

/** One row: the last entry of the account log that was counted. */
export interface AuditCountedTable {
  is_only: Generated<boolean>
  until: string
}

export interface Tables {
  users: UsersTable
  sessions: SessionsTable
  ended_sessions: EndedSessionsTable
  signing_keys: SigningKeysTable
  password_tokens: PasswordTokensTable
  sign_ups: SignUpsTable
  email_tokens: EmailTokensTable
  undo_tokens: UndoTokensTable
  throttle: ThrottleTable
  audit: AuditTable
  audit_counts: AuditCountsTable
  audit_counted: AuditCountedTable
  posts: PostsTable
  posts_position_seq: PositionSequence
  current_epoch: CurrentEpochView
  uploads: UploadsTable
  upload_links: UploadLinksTable
  resumable_uploads: ResumableUploadsTable
  deleted_users: DeletedUsersTable
  replica_marks: ReplicaMarksTable
  recognised_networks: RecognisedNetworksTable
  login_failures: LoginFailuresTable
  event_consumers: EventConsumersTable
  outbox: OutboxTable
  failed_deliveries: FailedDeliveriesTable
  mail_limits: MailLimitsTable
  idempotency_keys: IdempotencyKeysTable
  upload_usage: UploadUsageTable
  post_rates: PostRatesTable
  passkeys: PasskeysTable
  api_keys: ApiKeysTable
  totp: TotpTable
  recovery_codes: RecoveryCodesTable
  identities: IdentitiesTable
  login_challenges: LoginChallengesTable
  login_mails: LoginMailsTable
  used_ceremonies: UsedCeremoniesTable
  user_imports: UserImportsTable
  password_kinds: PasswordKindsTable
}

/** The first argument of every function in `db/`: the database, or a transaction on it. */
export type Database = Kysely<Tables> | Transaction<Tables>

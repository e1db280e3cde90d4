import type { Kysely, Transaction } from 'kysely'
import type { EndedSessionsTable, SessionsTable, SigningKeysTable } from './access.ts'
import type {
  ApiKeysTable, IdentitiesTable, LoginChallengesTable, PasskeysTable, PasswordKindsTable, RecoveryCodesTable,
  TotpTable, UsedCeremoniesTable,
} from './sign-in.ts'
import type {
  LoginLinksTable, PasswordLinksTable, SignUpsTable, UndoLinksTable, VerificationLinksTable,
} from './mail-links.ts'
import type { LoginFailuresTable, RecognisedNetworksTable, ThrottleTable } from './throttle.ts'
import type { DeletedUsersTable, UserImportsTable, UsersTable } from './users.ts'
import type {
  CurrentEpochView, IndexedPostsTable, PositionSequence, PostDeletionsTable, PostDraftsTable, PostRatesTable,
  PostsTable, PostWordsTable,
} from './posts.ts'
import type { ResumableUploadsTable, UploadLinksTable, UploadUsageTable, UploadsTable } from './uploads.ts'
import type { MembershipsTable, OrganizationInvitationsTable, OrganizationsTable } from './organizations.ts'
import type { AuditCountedTable, AuditCountsTable, AuditTable, FailedLoginsTable } from './audit.ts'
import type { ReplicaMarksTable } from './replicas.ts'
import type { IdempotencyKeysTable } from './idempotency.ts'
import type { EventConsumersTable, FailedDeliveriesTable, MailLimitsTable, OutboxTable } from './outbox.ts'

export type { UserRow, UsersTable } from './users.ts'

/** The tables, in the order of the capabilities. */
export interface Tables {
  users: UsersTable
  user_imports: UserImportsTable
  deleted_users: DeletedUsersTable
  sessions: SessionsTable
  ended_sessions: EndedSessionsTable
  signing_keys: SigningKeysTable
  login_challenges: LoginChallengesTable
  password_kinds: PasswordKindsTable
  passkeys: PasskeysTable
  used_ceremonies: UsedCeremoniesTable
  totp: TotpTable
  recovery_codes: RecoveryCodesTable
  identities: IdentitiesTable
  api_keys: ApiKeysTable
  undo_links: UndoLinksTable
  password_links: PasswordLinksTable
  verification_links: VerificationLinksTable
  sign_ups: SignUpsTable
  login_links: LoginLinksTable
  organizations: OrganizationsTable
  memberships: MembershipsTable
  organization_invitations: OrganizationInvitationsTable
  throttle: ThrottleTable
  recognised_networks: RecognisedNetworksTable
  login_failures: LoginFailuresTable
  posts: PostsTable
  post_deletions: PostDeletionsTable
  post_drafts: PostDraftsTable
  posts_position_seq: PositionSequence
  current_epoch: CurrentEpochView
  post_rates: PostRatesTable
  post_words: PostWordsTable
  indexed_posts: IndexedPostsTable
  uploads: UploadsTable
  upload_links: UploadLinksTable
  resumable_uploads: ResumableUploadsTable
  upload_usage: UploadUsageTable
  audit: AuditTable
  audit_counts: AuditCountsTable
  audit_counted: AuditCountedTable
  failed_logins: FailedLoginsTable
  replica_marks: ReplicaMarksTable
  event_consumers: EventConsumersTable
  outbox: OutboxTable
  failed_deliveries: FailedDeliveriesTable
  mail_limits: MailLimitsTable
  idempotency_keys: IdempotencyKeysTable
}

/** The first argument of every function in `db/`: the database, or a transaction on it. */
export type Database = Kysely<Tables> | Transaction<Tables>

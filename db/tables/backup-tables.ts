import type { Tables } from './index.ts'

/**
 * What happens to the rows of a table in a backup (contract 14.4):
 * - `kept`: they are backed up and restored.
 * - `sessions`: they are backed up, and restored only if sessions are kept. Otherwise a session that was ended after
 *   the backup would be live again, and a token that an old key has signed would be valid.
 * - `left out`: they are not backed up, because they have no meaning later.
 */
export type BackupKind = 'kept' | 'sessions' | 'left out'

type TableName = Exclude<keyof Tables, 'posts_position_seq' | 'current_epoch'>

/** Every table of Usher. A table that is added to `Tables` must be added here as well. */
export const backupTables: Readonly<Record<TableName, BackupKind>> = {
  users: 'kept',
  sessions: 'sessions',
  ended_sessions: 'sessions',
  signing_keys: 'sessions',
  password_links: 'kept',
  sign_ups: 'kept',
  verification_links: 'kept',
  undo_links: 'kept',
  // As ways to sign in: a membership that was ended after the backup is back.
  organizations: 'kept',
  memberships: 'kept',
  organization_invitations: 'kept',
  // Limits of minutes, in a table that a crash empties, too.
  throttle: 'left out',
  audit: 'kept',
  // They are counted again.
  audit_counts: 'left out',
  audit_counted: 'left out',
  posts: 'kept',
  post_deletions: 'kept',
  // What was due meanwhile is published by the first node that starts.
  post_drafts: 'kept',
  uploads: 'kept',
  // Like sessions: one that was revoked after the backup would work again.
  upload_links: 'sessions',
  // A client begins anew. Their bytes are not in a backup.
  resumable_uploads: 'left out',
  deleted_users: 'kept',
  recognised_networks: 'kept',
  login_failures: 'kept',
  event_consumers: 'kept',
  outbox: 'kept',
  failed_deliveries: 'kept',
  // Limits of hours.
  mail_limits: 'left out',
  idempotency_keys: 'kept',
  // Uploads are counted when their owner uploads next.
  upload_usage: 'left out',
  // The limits of an hour.
  post_rates: 'left out',
  // Nodes fill them from the posts.
  post_words: 'left out',
  indexed_posts: 'left out',
  // As those below: without it, users could not log in. What was removed after the backup is back, and the restore says
  // so (`node/backup/undone.ts`).
  passkeys: 'kept',
  // A key that was deleted after the backup may have been stolen.
  api_keys: 'sessions',
  totp: 'kept',
  recovery_codes: 'kept',
  identities: 'kept',
  // Logins of five minutes.
  login_challenges: 'left out',
  // Links and codes of ten minutes.
  login_links: 'left out',
  used_ceremonies: 'sessions',
  user_imports: 'kept',
  password_kinds: 'kept',
  // They say that a standby follows this database.
  replica_marks: 'left out',
}

/** Returns whether a name is that of a table of Usher. */
export const isBackupTable = (name: string): name is TableName => Object.hasOwn(backupTables, name)

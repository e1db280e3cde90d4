import type { Generated, GeneratedAlways, Selectable } from 'kysely'
import type { Members, Role, ShownMember, UserKind } from '../../schema/users/members.ts'
import type { Row } from './row.ts'

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

/** How far the import of a file of users is. Integers are bigints, which are read as text. */
export interface UserImportsTable {
  /** SHA-256 of the file. */
  file_hash: Uint8Array
  /** Up to which byte of the file, and which line, it is done. */
  position: Generated<string>
  line: Generated<string>
  imported: Generated<string>
  /** How many of the imported users are admins. */
  admins: Generated<string>
  rejected: Generated<string>
  /** The size of the file of rejected lines. */
  rejected_bytes: Generated<string>
  started_at: Generated<Date>
  finished_at: Date | null
}

/**
 * A deleted user whose posts, uploads or audit entries are still being removed. They are not visible any more, and are
 * removed in batches. See `db/users/deleted-users.ts`.
 */
export interface DeletedUsersTable {
  user_id: string
  /** The user's posts from this position on are deleted; a bigint, which is read as text. */
  posts_below: Generated<string>
  /** The user's audit entries from this id on are blanked. */
  audit_below: Generated<string>
}

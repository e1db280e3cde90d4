import type { ColumnType, Generated, GeneratedAlways, Kysely, Transaction } from 'kysely'
import type { Role } from '../schema/user.ts'
import type { ColumnOf, Row } from './row.ts'

/** A user. `email` is unique, regardless of case. */
export interface UsersTable {
  id: string
  name: string
  email: string
  role: Role
  /** argon2id in PHC format; null for a user who has no password yet. */
  password_hash: string | null
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

/** The columns of a user's public data. */
export const userColumns = ['id', 'name', 'email', 'role', 'created_at as createdAt', 'updated_at as updatedAt'] as const

/**
 * The columns that creating and replacing a user set, with their types in SQL. Both statements are derived from this list. A value
 * that is absent becomes null, except that a new user has the role `user` and a replacement without a role keeps it. The columns have
 * the names of the members in requests, and texts as values.
 */
export const writableUserColumns = { name: 'text', email: 'text', role: 'text' } as const satisfies Partial<Record<Exclude<keyof UsersTable, 'id' | 'password_hash' | 'created_at' | 'updated_at'>, string>>

/** The public data of a user. */
export type UserRow = Row<UsersTable, ColumnOf<typeof userColumns[number]>>

/** A session that has not ended. When a row is deleted, by whatever means, a trigger adds its id to `ended_sessions`. */
export interface SessionsTable {
  id: string
  user_id: string
  /** SHA-256 of the secret in the cookie. */
  secret_hash: Uint8Array
  /** The key that signs the cookie, including its number of rotations. */
  rotation_key: Uint8Array
  /** The number of rotations of the cookie. A cookie with a lower number is an old one. */
  rotations: Generated<number>
  /** The times of the latest rotations, oldest first. */
  rotated_at: Generated<Date[]>
  address: string
  user_agent: string
  created_at: Generated<Date>
  /** The time of the login or of the last refresh. */
  last_used_at: Generated<Date>
  /** The idle expiry or the absolute expiry, whichever is sooner. */
  expires_at: Date
}

/** An ended session whose access tokens may not have expired. Rows are kept for the lifetime of a token. */
export interface EndedSessionsTable {
  id: string
  ended_at: Generated<Date>
}

/** An Ed25519 key that signs access tokens, shared by all nodes. A trigger notifies them when a row is added, changed or deleted. */
export interface SigningKeysTable {
  /** The `kid`: the RFC 7638 thumbprint of the public key. */
  id: string
  /** PKCS #8, PEM; encrypted if the node that stored it has a secret. */
  private_key: string
  /** SPKI, PEM. */
  public_key: string
  created_at: Generated<Date>
  /** The time from which it signs. By then every node knows it. */
  active_at: Generated<Date>
}

/** A token of a link that was mailed to set a password. It proves access to the user's mailbox, and can be used once. */
export interface PasswordTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  created_at: Generated<Date>
  expires_at: Date
}

/** The used part of a limit, for example of an account or a network. See `db/throttle.ts`. */
export interface ThrottleTable {
  /** The name of the limit, and the SHA-256 hash of what it is counted for. */
  key: string
  /** The time when the whole limit is available again. After that, the row has no effect. */
  free_at: Date
  /** The number of attempts that the last statement let through; that statement returns it. */
  granted: number
}

/** A recognised network: one that a user has logged in from. See `schema/network.ts`. */
export interface RecognisedNetworksTable {
  user_id: string
  network: string
  last_used_at: Generated<Date>
}

/**
 * The number of failed logins in a row. Unlike `throttle`, this table is not `unlogged`: a crash must not give an attacker another
 * hundred attempts.
 */
export interface LoginFailuresTable {
  /** SHA-256 of the e-mail address, which may belong to no user. */
  key: Uint8Array
  count: number
  last_failed_at: Generated<Date>
}

/** An entry of the account log: who did what and when. It remains when the users it refers to are deleted. */
export interface AuditTable {
  /** A UUIDv7, so ids are in order of time. */
  id: string
  /** For example `login` or `password.change`. */
  action: string
  /** The id of the user who did it; null if unknown. */
  actor_id: string | null
  /** The id of the user whose account was affected; null if there is none, as for a failed login with an unknown address. */
  user_id: string | null
  session_id: string | null
  address: string
  user_agent: string
  created_at: Generated<Date>
}

export interface PostsTable {
  id: string
  /** The number of the post in commit order, with gaps; a bigint, which is read as text. See `db/migrations/positions.ts`. */
  position: GeneratedAlways<string>
  /** The epoch in which the post was created. See `db/migrations/epochs.ts`. */
  epoch: GeneratedAlways<number>
  author_id: string
  title: string
  content: string
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

/** A view with one row: the current epoch. */
interface CurrentEpochView { epoch: number }

/** The sequence that assigns positions, as a relation to read from. */
interface PositionSequence {
  last_value: GeneratedAlways<string>
  is_called: GeneratedAlways<boolean>
}

/**
 * A deleted user whose posts, uploads or audit entries are still being removed. They are not visible any more, and are removed in
 * batches. See `db/deleted-users.ts`.
 */
export interface DeletedUsersTable {
  user_id: string
  /** The user's posts from this position on are deleted; a bigint, which is read as text. */
  posts_below: Generated<string>
  /** The user's audit entries from this id on are blanked. */
  audit_below: Generated<string>
}

/** The record of a stored file. Without an owner, the file is no longer served and will be deleted. */
export interface UploadsTable {
  id: string
  user_id: string | null
  filename: string
  media_type: string
  /** Bytes; a bigint, which is read as text. */
  size: ColumnType<string, number, number>
  /** Hexadecimal. */
  sha256: string
  description: string
  created_at: Generated<Date>
}

export interface Tables {
  users: UsersTable
  sessions: SessionsTable
  ended_sessions: EndedSessionsTable
  signing_keys: SigningKeysTable
  password_tokens: PasswordTokensTable
  throttle: ThrottleTable
  audit: AuditTable
  posts: PostsTable
  posts_position_seq: PositionSequence
  current_epoch: CurrentEpochView
  uploads: UploadsTable
  deleted_users: DeletedUsersTable
  recognised_networks: RecognisedNetworksTable
  login_failures: LoginFailuresTable
}

/** The first argument of every function in `db/`: the database, or a transaction on it. */
export type Database = Kysely<Tables> | Transaction<Tables>

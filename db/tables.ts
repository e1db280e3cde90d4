import type { ColumnType, Generated, GeneratedAlways, Kysely, Selectable, Transaction } from 'kysely'
import type { Role } from '../schema/user.ts'

/** A user; `email` is unique without regard to case. */
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

/** A live session. A row that is deleted, by whatever means, leaves its id in `ended_sessions`. */
export interface SessionsTable {
  id: string
  user_id: string
  /** SHA-256 of the secret in the cookie. */
  secret_hash: Uint8Array
  /** What the cookie is signed with, with the number of its rotations. */
  rotation_key: Uint8Array
  /** How often the cookie was rotated: one that says less is an old one. */
  rotations: Generated<number>
  /** When it was, the last times, oldest first. */
  rotated_at: Generated<Date[]>
  address: string
  user_agent: string
  created_at: Generated<Date>
  /** By a login or a refresh. */
  last_used_at: Generated<Date>
  /** For having been idle, or at the latest, whichever is sooner. */
  expires_at: Date
}

/** Sessions whose access tokens may still be about; kept for as long as a token lives. */
export interface EndedSessionsTable {
  id: string
  ended_at: Generated<Date>
}

/** An Ed25519 key that signs access tokens, shared by all nodes. A row that comes, changes or goes is told to all. */
export interface SigningKeysTable {
  /** The `kid`: the RFC 7638 thumbprint of the public key. */
  id: string
  /** PKCS #8, PEM; sealed where there is a secret to seal it with. */
  private_key: string
  /** SPKI, PEM. */
  public_key: string
  created_at: Generated<Date>
  /** From when on it signs: by then every node knows it. */
  active_at: Generated<Date>
}

/** What a link by mail proves: that somebody reads the user's mail. Each serves once. */
export interface PasswordTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  created_at: Generated<Date>
  expires_at: Date
}

/** How much of a limit is used up, of an account or an address; see `db/throttle.ts`. */
export interface ThrottleTable {
  /** What is limited, and SHA-256 of for whom. */
  key: string
  /** When all of it will be free again; the row means nothing after that. */
  free_at: Date
  /** Of the attempts that were charged together last, how many were let through: the answer to their statement. */
  granted: number
}

/** A network that a user has logged in from; see `schema/network.ts`. */
export interface RecognisedNetworksTable {
  user_id: string
  network: string
  last_used_at: Generated<Date>
}

/** How often in a row a password was wrong. Logged, unlike `throttle`: a crash must not give an attacker another hundred. */
export interface LoginFailuresTable {
  /** SHA-256 of the e-mail address, which may be nobody's. */
  key: Uint8Array
  count: number
  last_failed_at: Generated<Date>
}

/** Who did what and when; outlives whom it speaks of. */
export interface AuditTable {
  /** UUIDv7: the order is that of time. */
  id: string
  /** Such as `login` or `password.change`. */
  action: string
  /** Who did it; null where nobody was known. */
  actor_id: string | null
  /** To whose account it happened; null where there is none, such as a failed login to an unknown address. */
  user_id: string | null
  session_id: string | null
  address: string
  user_agent: string
  created_at: Generated<Date>
}

export interface PostsTable {
  id: string
  /** In the order of commits, with gaps; a bigint, which arrives as text. See `db/migrations/positions.ts`. */
  position: GeneratedAlways<string>
  /** In which it was created, see `db/migrations/epochs.ts`. */
  epoch: GeneratedAlways<number>
  author_id: string
  title: string
  content: string
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

/** The present epoch, as one row. */
interface CurrentEpochView { epoch: number }

/** The sequence that positions come from, to be read. */
interface PositionSequence {
  last_value: GeneratedAlways<string>
  is_called: GeneratedAlways<boolean>
}

/**
 * A deleted user whose posts, uploads or audit entries are still being removed. Whatever belongs to one is invisible, and
 * deleted in batches; see `db/deleted-users.ts`.
 */
export interface DeletedUsersTable {
  user_id: string
  /** The user's posts from this position on are deleted; a bigint, which arrives as text. */
  posts_below: Generated<string>
  /** The user's audit entries from this one on are blanked. */
  audit_below: Generated<string>
}

/** The record of a stored file. One that lost its owner is no longer served, and its file is swept away. */
export interface UploadsTable {
  id: string
  user_id: string | null
  filename: string
  media_type: string
  /** Octets; a bigint, which arrives as text. */
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

/** What every function of this floor takes first: the database, or a transaction on it. */
export type Database = Kysely<Tables> | Transaction<Tables>

/** A row as the other floors see it: the same columns, in camel case. */
export type Row<Table, Columns extends keyof Selectable<Table>> = {
  [Column in Columns as Camel<Column & string>]: Selectable<Table>[Column]
}

/** What everybody may know of a user. */
export type UserRow = Row<UsersTable, 'id' | 'name' | 'email' | 'role' | 'created_at' | 'updated_at'>

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name

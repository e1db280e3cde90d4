import type { ColumnType, Generated, Kysely, Selectable, Transaction } from 'kysely'
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
  address: string
  user_agent: string
  created_at: Generated<Date>
  last_used_at: Generated<Date>
  expires_at: Date
}

/** Sessions whose access tokens may still be about; kept for as long as a token lives. */
export interface EndedSessionsTable {
  id: string
  ended_at: Generated<Date>
}

/** An Ed25519 key that signs access tokens, shared by all nodes. */
export interface SigningKeysTable {
  /** The `kid`: the RFC 7638 thumbprint of the public key. */
  id: string
  /** PKCS #8 and SPKI, PEM. */
  private_key: string
  public_key: string
  created_at: Generated<Date>
}

export interface PostsTable {
  id: string
  author_id: string
  title: string
  content: string
  created_at: Generated<Date>
  updated_at: Generated<Date>
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
  posts: PostsTable
  uploads: UploadsTable
}

/** What every function of this floor takes first: the database, or a transaction on it. */
export type Database = Kysely<Tables> | Transaction<Tables>

/** A row as the other floors see it: the same columns, in camel case. */
export type Row<Table, Columns extends keyof Selectable<Table>> = {
  [Column in Columns as Camel<Column & string>]: Selectable<Table>[Column]
}

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name

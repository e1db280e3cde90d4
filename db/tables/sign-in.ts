import type { Generated } from 'kysely'

/** A login whose first factor was right, and that waits for the second one. */
export interface LoginChallengesTable {
  /** SHA-256 of the challenge that the client has. */
  hash: Uint8Array
  user_id: string
  /** The hash against which the password was checked; null if the first factor was another one. */
  password_hash: string | null
  /** How the user was authenticated so far (RFC 8176). */
  amr: string[]
  /** The identity that was the first factor; null if it was another one. */
  identity_id: string | null
  /** The provider's own session (`sid`). */
  provider_sid: string | null
  /** How many second factors were tried. */
  attempts: Generated<number>
  created_at: Generated<Date>
  expires_at: Date
}

/**
 * A kind of password hashes that were imported, as long as a user may have one: see `kind` in
 * `schema/sign-in/passwords/stored-hash.ts`. Every failed login takes the work of all of them.
 */
export interface PasswordKindsTable {
  kind: string
  /** The signer key of a Firebase project in base64; encrypted if the node that stored it has a secret. */
  signer_key: string | null
  /** When it was last looked for users who have one. */
  checked_at: Generated<Date>
}

/** A public key with which its user signs in (WebAuthn). */
export interface PasskeysTable {
  id: string
  user_id: string
  /** The id that the authenticator has given it. */
  credential_id: Uint8Array
  /** A COSE_Key (RFC 9052 7). */
  public_key: Uint8Array
  /** The highest signature counter seen; a bigint, which is read as text. Synced passkeys have none, which is 0. */
  counter: string
  /** How browsers reach the authenticator, such as `internal` or `usb`. */
  transports: string[]
  name: string
  /** Whether the provider of the passkey keeps a copy of it, as of its last use. */
  backed_up: boolean
  created_at: Generated<Date>
  last_used_at: Date | null
}

/**
 * What was used and cannot be used again, until it expires: a challenge of WebAuthn, the state of a login at a
 * provider, or the token of a provider's logout. Challenges and states that are issued are not stored.
 */
export interface UsedCeremoniesTable {
  /** SHA-256 of it. */
  hash: Uint8Array
  expires_at: Date
}

/** The secret from which a user's authenticator app computes codes (RFC 6238). */
export interface TotpTable {
  user_id: string
  /** In base32; encrypted if the node that stored it has a secret. */
  secret: string
  /** When the user has proved to have the secret. Before that, it is no second factor. */
  confirmed_at: Date | null
  /**
   * The time step of the last accepted code; a bigint, which is read as text. Codes of this and earlier steps are
   * rejected.
   */
  last_step: Generated<string>
  created_at: Generated<Date>
}

/** A code that replaces the second factor once. It is deleted when it is used. */
export interface RecoveryCodesTable {
  user_id: string
  /** SHA-256 of the code. */
  hash: Uint8Array
  created_at: Generated<Date>
  /** When others have replaced it: it is void, and kept for as long as a link can undo that. Null if it works. */
  replaced_at: Date | null
}

/** An account that a user has at a provider, with which the user signs in (contract 16.5). */
export interface IdentitiesTable {
  id: string
  user_id: string
  /** The id of the provider in the options. */
  provider: string
  /** Together with `subject`, it says who it is, and is unique. */
  issuer: string
  subject: string
  /** The address that the provider gave when it was used last, verified or not; null if there was none. */
  email: string | null
  /** The tokens of the provider, encrypted; null unless the option `keepTokens` is set. */
  tokens: string | null
  created_at: Generated<Date>
  last_used_at: Date | null
}

/**
 * An API key of a user, which takes the place of a session. When a row is deleted, by whatever means, a trigger adds
 * its id to `ended_sessions`. Another trigger deletes the keys of a user who is disabled or gets another role.
 */
export interface ApiKeysTable {
  id: string
  user_id: string
  /** SHA-256 of the key. */
  hash: Uint8Array
  name: string
  /** The actions of the policy that it permits; null if it permits all. */
  actions: string[] | null
  /** The membership for whose organisation it acts, and with which it ends; null if it acts for none. */
  membership_id: Generated<string | null>
  /** Whether it was created in a session that was authenticated with a second factor. */
  multi_factor: boolean
  created_at: Generated<Date>
  /** Nodes write it at most once a minute. */
  last_used_at: Date | null
  /** Null if it does not expire. */
  expires_at: Date | null
}

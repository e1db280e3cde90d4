import type { Generated } from 'kysely'

/**
 * A session that has not ended. When a row is deleted, by whatever means, a trigger adds its id to `ended_sessions`.
 */
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
  /** How the user was authenticated (RFC 8176). */
  amr: string[]
  /** When the user was authenticated last. */
  auth_time: Date
  /** The identity by which the session was started, which may be gone by now; null if it was another way. */
  identity_id: string | null
  /** How the provider calls its own session (`sid`), by which its logout ends this one; null if it does not say. */
  provider_sid: string | null
  /** Whether it is a session of the console, which has a cookie of its own and is never refreshed. */
  is_console: Generated<boolean>
  /** The session whose token has opened this one, which therefore ends with it; null if it was a login. */
  parent_id: string | null
}

/** An ended session whose access tokens may not have expired. Rows are kept for the lifetime of a token. */
export interface EndedSessionsTable {
  id: string
  ended_at: Generated<Date>
}

/**
 * A key that signs access tokens, Ed25519 or P-256, shared by all nodes. A trigger notifies them when a row is added,
 * changed or deleted.
 */
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

/**
 * A token of a link that was mailed to set a password. It proves access to the user's mailbox, and can be used once.
 */
export interface PasswordTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  created_at: Generated<Date>
  expires_at: Date
  /** Whether it is that of an invitation. */
  invitation: Generated<boolean>
  /** The user who has invited; null if that was the operator or the host. */
  invited_by: string | null
}

/** A sign-up whose link has not been used. No user exists yet, and several sign-ups may be pending for one address. */
export interface SignUpsTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  name: string
  email: string
  /** The password that the browser or client of `binding_hash` has sent; null if it has sent none. */
  password_hash: string | null
  /** The values of the host's fields, by name; null if there are none. */
  fields: unknown
  /** The identity at a provider with which the sign-up was made; null if it was made without one. */
  identity: unknown
  /** SHA-256 of the secret of the browser or client that has signed up. */
  binding_hash: Uint8Array
  created_at: Generated<Date>
  expires_at: Date
}

/** A token of a link that was mailed to verify an address. It is deleted when the user gets another address. */
export interface EmailTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  /** The address to which the link was sent. */
  email: string
  /** The session in which the new address was requested; null if the token verifies the current address. */
  session_id: string | null
  created_at: Generated<Date>
  expires_at: Date
}

/** A token of a link that undoes a change of the address or the password, with the values from before the change. */
export interface UndoTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  /** In the order of a user's changes, whatever the clock does. */
  position: Generated<string>
  email: string
  email_verified: boolean
  email_changed_at: Date | null
  password_hash: string | null
  created_at: Generated<Date>
  expires_at: Date
}

/** The used part of a limit, for example of an account or a network. See `db/throttle/throttle.ts`. */
export interface ThrottleTable {
  /** The name of the limit, and the SHA-256 hash of what it is counted for. */
  key: string
  /** The time when the whole limit is available again. After that, the row has no effect. */
  free_at: Date
  /** The number of attempts that the last statement let through; that statement returns it. */
  granted: number
}

/** A recognised network: one that a user has logged in from. See `schema/http/network.ts`. */
export interface RecognisedNetworksTable {
  user_id: string
  network: string
  last_used_at: Generated<Date>
}

/**
 * The number of failed logins in a row. Unlike `throttle`, this table is not `unlogged`: a crash must not give an
 * attacker another hundred attempts.
 */
export interface LoginFailuresTable {
  /** SHA-256 of the e-mail address, which may belong to no user. */
  key: Uint8Array
  count: number
  last_failed_at: Generated<Date>
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
  /** Whether it was created in a session that was authenticated with a second factor. */
  multi_factor: boolean
  created_at: Generated<Date>
  /** Nodes write it at most once a minute. */
  last_used_at: Date | null
  /** Null if it does not expire. */
  expires_at: Date | null
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
 * The link and the code of a mail with which a user logs in, or the code of one with which the user of a session steps
 * up. A trigger deletes them when the user gets another address.
 */
export interface LoginMailsTable {
  /** SHA-256 of the token in the link; of a step-up, that of the id that the client has. */
  hash: Uint8Array
  /** Null if nobody gets the mail: then the row exists only so that attempts at its code take the same time. */
  user_id: string | null
  /** The session that is stepped up; null for a login. */
  session_id: string | null
  /** SHA-256 of the secret of the browser that has asked for the mail; null for a step-up. */
  binding_hash: Uint8Array | null
  /** SHA-256 of the code together with the secret of the browser, which makes it as hard to guess. */
  code_hash: Uint8Array
  /** SHA-256 of the address, which may belong to no user. */
  address_hash: Uint8Array
  /** How many codes were tried. */
  attempts: Generated<number>
  created_at: Generated<Date>
  expires_at: Date
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
 * What was used and cannot be used again, until it expires: a challenge of WebAuthn, the state of a login at a
 * provider, or the token of a provider's logout. Challenges and states that are issued are not stored.
 */
export interface UsedCeremoniesTable {
  /** SHA-256 of it. */
  hash: Uint8Array
  expires_at: Date
}

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

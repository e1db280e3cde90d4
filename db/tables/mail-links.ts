import type { Generated } from 'kysely'

/** A token of a link that undoes a change of the address or the password, with the values from before the change. */
export interface UndoLinksTable {
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

/**
 * A token of a link that was mailed to set a password. It proves access to the user's mailbox, and can be used once.
 */
export interface PasswordLinksTable {
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

/** A token of a link that was mailed to verify an address. It is deleted when the user gets another address. */
export interface VerificationLinksTable {
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

/**
 * The link and the code of a mail with which a user logs in, or the code of one with which the user of a session steps
 * up. A trigger deletes them when the user gets another address.
 */
export interface LoginLinksTable {
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

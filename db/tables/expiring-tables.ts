import type { Options } from '../../schema/options/options.ts'
import type { WithExpiry } from '../batching/delete-expired.ts'
import { linkKinds } from '../mail-links/kinds.ts'
import type { Tables } from './index.ts'

/** When rows of a table have expired, and how often nodes delete them. */
export interface Expiry<Name extends keyof Tables> {
  /** What the rows are, for the log. */
  readonly data: string
  /** The column with the time from which on they expire. */
  readonly column: keyof Tables[Name] & string
  /** How many seconds after that time they have expired; 0 by default. */
  readonly age?: (options: Options) => number
  /** The average time between two purges, in seconds. */
  readonly purgeSeconds: number
}

// The clocks of a server and of the standby that takes over may differ.
const SKEW_SECONDS = 60

/**
 * The tables whose rows expire (`plugins/database/purge-expired.ts`). Those that are `elsewhere` are purged by their
 * capability, because more happens then. A table with a column `expires_at` must be added here.
 */
export const expiringTables = {
  password_links: { data: 'password links', column: 'expires_at', purgeSeconds: 600 },
  verification_links: { data: 'links to verify addresses', column: 'expires_at', purgeSeconds: 600 },
  undo_links: { data: 'undo links', column: 'expires_at', purgeSeconds: 3600 },
  sign_ups: { data: 'sign-ups', column: 'expires_at', purgeSeconds: 600 },
  organization_invitations: { data: 'invitations to organisations', column: 'expires_at', purgeSeconds: 600 },
  login_links: { data: 'mails to log in', column: 'expires_at', purgeSeconds: 60 },
  login_challenges: { data: 'challenges of logins', column: 'expires_at', purgeSeconds: 60 },
  used_ceremonies: {
    data: 'used challenges of passkeys', column: 'expires_at', age: () => SKEW_SECONDS, purgeSeconds: 60,
  },
  // The link that undoes the replacement brings them back.
  recovery_codes: {
    data: 'replaced recovery codes', column: 'replaced_at', age: () => linkKinds.undo.seconds, purgeSeconds: 3600,
  },
  api_keys: { data: 'expired API keys', column: 'expires_at', purgeSeconds: 60 },
  recognised_networks: {
    data: 'recognised networks', column: 'last_used_at', age: ({ auditSeconds }) => auditSeconds, purgeSeconds: 3600,
  },
  // Those that nobody wants to know of any more.
  failed_logins: { data: 'counts of failed logins', column: 'minute', age: () => 3600, purgeSeconds: 3600 },
  upload_links: { data: 'expired links to uploads', column: 'expires_at', purgeSeconds: 600 },
  // Their ends are events, and sessions that were started with their tokens end with them.
  sessions: 'elsewhere',
  // Bytes are removed with them.
  resumable_uploads: 'elsewhere',
  // The oldest go first, and a lookup deletes those that it finds.
  idempotency_keys: 'elsewhere',
  // What nobody has attempted in time is logged as given up.
  outbox: 'elsewhere',
} as const satisfies
  { readonly [Name in WithExpiry]: Expiry<Name> | 'elsewhere' } &
  { readonly [Name in keyof Tables]?: Expiry<Name> | 'elsewhere' }

/** The tables whose rows expire without further effects. */
export type ExpiringTable =
  { [Name in keyof typeof expiringTables]: typeof expiringTables[Name] extends 'elsewhere' ? never : Name }[
    keyof typeof expiringTables
  ]

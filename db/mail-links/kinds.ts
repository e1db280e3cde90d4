import { sql, type RawBuilder } from 'kysely'
import type { Database, Tables } from '../tables/index.ts'

/** What the export of a user calls a link. */
export type ExportedLinkKind = 'set-password' | 'verify-email' | 'undo-change' | 'log-in' | 'step-up'

const DAY_SECONDS = 86_400
const MAX_PENDING = 10_000

/**
 * How long a change can be undone. During this time, no link to reset the password is sent to a new address that is not
 * verified.
 */
export const UNDO_DAYS = 7

/** A kind of link in mails. Each row of its table is a token, by its hash (`expiring-tables.ts` says until when). */
export interface LinkKind<Table extends keyof Tables> {
  readonly table: Table
  /** For how long a link works, unless only an option says so. */
  readonly seconds?: number
  /** How many may be pending for all addresses, if anybody can ask for one. Beyond it, no further one is stored. */
  readonly pending?: number
  /** Whether it belongs to a user, who exports it, and whose repairs void it. */
  readonly user: null | {
    readonly exportedAs: RawBuilder<ExportedLinkKind>
    /** Whether it has an address of its own, which it verifies or restores. */
    readonly hasAddress: boolean
    /** Whether a new password of the user voids it, because somebody else may have asked for it. */
    readonly voidedByPassword: boolean
  }
}

const exportedAs = (kind: ExportedLinkKind) => sql<ExportedLinkKind>`${sql.lit(kind)}`

/**
 * The kinds of links in mails. Whatever voids, exports or sends links goes through this table. Foreign keys delete
 * those of a user along with the user.
 */
export const linkKinds = {
  undo: {
    table: 'undo_links',
    seconds: UNDO_DAYS * DAY_SECONDS,
    // Its owner takes a change of somebody else back with it, also that of the password.
    user: { exportedAs: exportedAs('undo-change'), hasAddress: true, voidedByPassword: false },
  },
  password: {
    table: 'password_links',
    // An invitation comes unexpectedly, so its recipient may not read it for days. That of a reset is the option
    // `passwordTokenSeconds`.
    seconds: 7 * DAY_SECONDS,
    user: { exportedAs: exportedAs('set-password'), hasAddress: false, voidedByPassword: true },
  },
  verification: {
    table: 'verification_links',
    seconds: DAY_SECONDS,
    user: { exportedAs: exportedAs('verify-email'), hasAddress: true, voidedByPassword: true },
  },
  login: {
    table: 'login_links',
    seconds: 600,
    pending: MAX_PENDING,
    user: {
      exportedAs: sql<ExportedLinkKind>`case when session_id is null then 'log-in' else 'step-up' end`,
      hasAddress: false,
      voidedByPassword: true,
    },
  },
  signUp: { table: 'sign_ups', seconds: DAY_SECONDS, pending: MAX_PENDING, user: null },
  // For an address, which may have no user. The option `organizations` says how many days it works.
  organization: { table: 'organization_invitations', user: null },
} as const satisfies Readonly<Record<string, LinkKind<keyof Tables>>>

type Kind = typeof linkKinds[keyof typeof linkKinds]
export type LinkTable = Kind['table']
/** A table with links of users. */
export type UserLinkTable = Exclude<Kind, { user: null }>['table']

const kinds: readonly LinkKind<LinkTable>[] = Object.values(linkKinds)

/** The tables of all kinds of links. */
export const linkTables: readonly LinkTable[] = kinds.map(({ table }) => table)

/** The kinds of links that belong to users. */
export const userLinks = kinds.flatMap(({ table, user }) => user ? [{ table: table as UserLinkTable, ...user }] : [])

/**
 * What a repair makes void: each row is the token of a link or a code that was mailed for a user, or of a login that
 * waits for the second factor.
 */
export const tablesToVoid = [...userLinks.map(({ table }) => table), 'login_challenges'] as const

/** What a new password makes void: everything that somebody else may have, except links that undo a change. */
export const tablesVoidedByPassword: typeof tablesToVoid = [
  ...userLinks.filter(({ voidedByPassword }) => voidedByPassword).map(({ table }) => table), 'login_challenges',
]

/**
 * Makes links and codes void that were mailed for a user, and logins that wait for a second factor: all of them, or
 * those of some tables. Call it in a transaction that has locked the user.
 */
export async function voidLinks (
  trx: Database, userId: string, tables: readonly typeof tablesToVoid[number][] = tablesToVoid
): Promise<void> {
  for (const table of tables) await trx.deleteFrom(table).where('user_id', '=', userId).execute()
}

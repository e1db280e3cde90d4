import { sql } from 'kysely'
import { credentialKinds, type CredentialKind } from '../../schema/sign-in/ways.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import { tablesVoidedByPassword, UNDO_DAYS, voidLinks, tablesToVoid } from '../mail-links/kinds.ts'
import { voidInvitationsOf } from '../organizations/invitations.ts'
import { storeCredentialEvent } from '../outbox/store.ts'
import { deleteSessionsOf } from '../access/ended-sessions.ts'
import type { Database } from '../tables/index.ts'
import { expireResumableUploads } from '../uploads/resumable-uploads.ts'
import { voidUploadLinks } from '../uploads/upload-links.ts'
import { cancelPlansOf } from '../posts/drafts.ts'
import { lockUser } from '../users/users.ts'
import { listWays, ways, type StoredWay, type Which } from './ways.ts'

const DAY_MS = 86_400_000

/**
 * What happens to a way to sign in: it is removed, or if it was added in the last `RECENT_DAYS`, or while the mailbox
 * can undo it anyway, or since the change that is undone; or it stays.
 */
type Decision = 'remove' | 'recent' | 'undoable' | 'since' | 'keep'

/** How long ago somebody may have added a way to sign in of which the owner does not know. */
export const RECENT_DAYS = 30

// Somebody else has acted for the user, and can see what the user has: the ways stay, but no key that acts by itself.
const byOthers = { passkey: 'keep', totp: 'keep', identity: 'keep', 'api-key': 'remove' } as const
// An operator has found out who the user is. The app stays, because it lets nobody in by itself: without it, the
// password alone would suffice.
const byOperator = { passkey: 'remove', totp: 'keep', identity: 'remove', 'api-key': 'remove' } as const

/**
 * What each repair of an account does to each way to sign in (contract 11.3). A kind without a decision does not
 * compile. Every repair also ends all sessions, and voids the links in mails, those to uploads, unfinished uploads,
 * logins that wait for the second factor, and the invitations to organisations that the user has sent, and takes the
 * times from drafts of posts.
 */
export const repairs = {
  // Nobody has proved the address before, so whatever was set up may be that of somebody who claims the address.
  'first-proof': { passkey: 'remove', totp: 'remove', identity: 'remove', 'api-key': 'remove' },
  // A mailbox does not remove a second factor, except one that it can remove by the link of the mail about it.
  'mail-reset': { passkey: 'recent', totp: 'undoable', identity: 'recent', 'api-key': 'remove' },
  undo: { passkey: 'since', totp: 'since', identity: 'since', 'api-key': 'since' },
  'operator-reset': byOperator,
  'first-admin': byOperator,
  'second-factor-reset': { passkey: 'keep', totp: 'remove', identity: 'keep', 'api-key': 'remove' },
  promotion: byOthers,
  disabling: byOthers,
  'sessions-end': byOthers,
  'removal-by-admin': byOthers,
} as const satisfies Record<string, Readonly<Record<CredentialKind, Decision>>>

export type Repair = keyof typeof repairs

export interface RepairOptions {
  /** The user who repairs; null if it is the operator or the host. */
  actorId: string | null
  /** The ids of ways that stay, where the user has been shown those that go. */
  keep?: readonly string[]
  /** Kinds that are decided otherwise. */
  decisions?: Partial<Record<CredentialKind, 'remove' | 'keep'>>
  /** When the change was made that is undone, with the precision of the database. */
  since?: string
  /** Whether links that undo a change stay: the repair decides about them itself. */
  keepsUndoLinks?: boolean
}

/** What a repair has ended and removed. */
export interface Repaired {
  /** The ids of sessions. */
  sessions: string[]
  removed: { kind: CredentialKind, id: string }[]
}

/** Returns the ids of everything whose tokens and keys nodes reject from now on. */
export const endedOf = ({ sessions, removed }: Repaired): string[] =>
  [...sessions, ...removed.filter(({ kind }) => kind === 'api-key').map(({ id }) => id)]

const daysAgo = (days: number) => sql<Date>`clock_timestamp() - make_interval(days => ${sql.lit(days)})`

function whichOf (decision: Decision, { keep = [], since }: RepairOptions): Which | undefined {
  switch (decision) {
    case 'keep': return undefined
    case 'remove': return {}
    case 'recent': return { since: daysAgo(RECENT_DAYS), except: keep }
    case 'undoable': return { since: daysAgo(UNDO_DAYS), except: keep }
    case 'since': return { since: sql<Date>`${since}::timestamptz` }
  }
}

/**
 * Repairs the account of a user: voids everything that was issued to the user, and removes the ways to sign in that
 * `repairs` names, with their events. Every repair calls it in its transaction (contract 11.3). The user is locked
 * first, so that a change by one of the sessions either precedes it or fails.
 */
export async function repairAccount (
  trx: Database, userId: string, repair: Repair, options: RepairOptions
): Promise<Repaired> {
  const { actorId, decisions, keepsUndoLinks = false } = options
  await lockUser(trx, userId)
  // Before the ways, because a login that is about to succeed locks its challenge before its second factor.
  await voidLinks(trx, userId, keepsUndoLinks ? tablesVoidedByPassword : tablesToVoid)
  await voidUploadLinks(trx, userId)
  await voidInvitationsOf(trx, userId)
  await expireResumableUploads(trx, userId)
  await cancelPlansOf(trx, userId)
  const removed: Repaired['removed'] = []
  for (const kind of credentialKinds) {
    const which = whichOf(decisions?.[kind] ?? repairs[repair][kind], options)
    if (!which) continue
    for (const { id } of await ways[kind].remove(trx, userId, which)) {
      await storeCredentialEvent(trx, 'credential.removed', { userId, actorId, kind })
      removed.push({ kind, id })
    }
  }
  return { sessions: await deleteSessionsOf(trx, userId, actorId), removed }
}

/** Returns which repair it is if a user sets a password by a link, or verifies the address by it. */
export const repairByMail = (isProved: boolean): 'mail-reset' | 'first-proof' => isProved ? 'mail-reset' : 'first-proof'

/** What a reset by mail would remove. */
export interface RemovedByReset {
  ways: StoredWay[]
  /** Whether those stay that are named: somebody has proved the address before. */
  mayKeep: boolean
}

/** Returns the ways of a user that a reset by mail removes if none is named. */
export async function listRemovedByReset (db: Database, userId: string): Promise<RemovedByReset> {
  const { isProved, now } = await db.selectFrom('users').where('id', '=', userId)
    .select(['email_verified as isProved', sql<Date>`clock_timestamp()`.as('now')])
    .executeTakeFirstOrThrow(() => new UserNotFound())
  const decisions = repairs[repairByMail(isProved)]
  const days = { remove: Infinity, recent: RECENT_DAYS, undoable: UNDO_DAYS }
  const found = await listWays(db, userId)
  return {
    ways: found.filter(({ kind, addedAt }) => now.getTime() - addedAt.getTime() < days[decisions[kind]] * DAY_MS),
    mayKeep: isProved,
  }
}

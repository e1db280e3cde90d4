import type { AuditAction } from '../../schema/audit/audit.ts'
import { quote, type Session } from './session.ts'

/** Something that was taken away since a backup, and that its restore has brought back. */
export interface Undone { action: AuditAction, userId: string, at: string }

// What takes access away, or what somebody knows. Nobody is locked out by doing it once more.
const actions: readonly AuditAction[] = [
  'passkey.remove', 'identity.remove', 'totp.remove', 'recovery-code.use', 'recovery-codes.create', 'password.change',
  'password.reset', 'password.remove', 'user.undo-change', 'user.email-change', 'user.disable', 'user.role-change',
  'user.delete',
]

// So many lines would be repeated by a program only.
const MAX_UNDONE = 10_000

/** What to do about each kind, in the order of the output. */
const remedies: readonly [actions: readonly AuditAction[], what: string, remedy: string][] = [
  [['user.delete'], 'deleted users', 'users delete'],
  [['user.disable'], 'disabled users', 'users disable'],
  [['user.role-change'], 'changes of a role', 'users promote or users demote'],
  [['passkey.remove', 'totp.remove'], 'removed passkeys and authenticator apps', 'users reset-second-factor'],
  [['identity.remove'], 'removed identities at providers', 'users reset-second-factor --identities'],
  [['recovery-code.use', 'recovery-codes.create'], 'used or replaced recovery codes', 'their users create new ones'],
  [
    ['password.change', 'password.reset', 'password.remove', 'user.undo-change', 'user.email-change'],
    'changes of a password or an address', 'users reset-password, or tell their users',
  ],
]

/**
 * Returns what the account log of a database has about accesses that were taken away since a moment, newest first. Call
 * it before a restore replaces the database.
 * @param since the moment of the backup
 */
export async function listTakenAway (session: Session, schema: string, since: string): Promise<Undone[]> {
  return session.query<{ action: AuditAction, userId: string, at: string }>(`
    select action, user_id::text as "userId", to_json(created_at at time zone 'UTC')#>>'{}' || 'Z' as at
    from ${quote(schema, 'audit')}
    where created_at >= $1::timestamptz and action = any($2::text[]) and user_id is not null
    order by created_at desc limit ${MAX_UNDONE}`, [since, [...actions]])
}

/** Returns those of the accesses whose users the restored database has. */
export async function findUndone (session: Session, schema: string, takenAway: readonly Undone[]): Promise<Undone[]> {
  const ids = [...new Set(takenAway.map(({ userId }) => userId))]
  const rows = await session.query<{ id: string }>(
    `select id::text as id from ${quote(schema, 'users')} where id = any($1::uuid[])`, [ids]
  )
  const present = new Set(rows.map(({ id }) => id))
  return takenAway.filter(({ userId }) => present.has(userId))
}

/** Returns sentences about what a restore has brought back, and with which commands it is taken away again. */
export function describeUndone (undone: readonly Undone[]): string {
  const lines = remedies.flatMap(([kinds, what, remedy]) => {
    const found = undone.filter(({ action }) => kinds.includes(action))
    const users = new Set(found.map(({ userId }) => userId)).size
    return found.length === 0 ? [] : [`  ${what}: ${found.length}, of ${users} user${users === 1 ? '' : 's'} (${remedy})`]
  })
  return lines.length === 0
    ? ''
    : `What was taken away since the backup is back, as the account log of the replaced database says:\n${lines.join('\n')}\n` +
      '  With --json, "undone" has each of them with its user.'
}

import { Type } from '@sinclair/typebox'
import { pageQuery } from '../http/params.ts'
import { Id, Instant, nullable } from '../strings/text.ts'

/** The actions that the account log records. */
export const auditActions = [
  'login', 'login.failed', 'login.second-factor-failed', 'login.mail-request', 'logout', 'step-up', 'step-up.failed',
  'step-up.mail-request',
  'session.refresh-reuse', 'session.end',
  'password.change', 'password.change-failed', 'password.reset-request', 'password.reset',
  'password.remove',
  'user.create', 'user.sign-up', 'user.invite', 'user.import', 'user.email-change', 'user.email-verify', 'user.undo-change',
  'user.role-change', 'user.disable',
  'user.enable', 'user.delete',
  'passkey.add', 'passkey.rename', 'passkey.remove', 'totp.add', 'totp.remove', 'api-key.add', 'api-key.remove',
  'identity.add', 'identity.remove', 'recovery-codes.create', 'recovery-code.use', 'keys.rotate', 'backup.create',
  'users.export', 'user.export', 'upload.read', 'upload.update', 'upload.delete', 'upload-link.create', 'upload-link.revoke',
  'delivery.retry', 'delivery.discard',
  'organization.create', 'organization.update', 'organization.delete', 'organization.invite', 'organization.withdraw-invitation',
  'membership.add', 'membership.role-change', 'membership.remove',
  // A request that got 403 or 429. The log records at most one a minute from the same source.
  'access.denied', 'access.throttled',
] as const

export type AuditAction = typeof auditActions[number]

const Action = Type.Unsafe<AuditAction>({ type: 'string', enum: auditActions })

/** An entry of the account log. */
export const AuditEntry = Type.Object({
  id: Id,
  action: Action,
  at: Instant,
  actorId: nullable('The user who did it; null if the request was not authenticated'),
  userId: nullable('The user whose account it concerns; null if there is no such account'),
  sessionId: nullable('The session in which it happened, or which it concerns'),
  keyId: nullable('The API key with which it was done; null if none was used'),
  organizationId: nullable('The organisation that it concerns; null if it concerns none'),
  address: Type.String({ description: 'The client address; empty if the reader may not see it' }),
  userAgent: Type.String({ description: 'The `User-Agent` of the client; empty if the reader may not see it' }),
}, { title: 'AuditEntry', description: 'An entry of the account log: who did what and when' })

/** The query of GET /api/audit. */
export const ListAudit = Type.Object({
  user: Type.Optional(
    Type.String({ description: 'Only entries about the account of this user. Only an admin may name another user' })
  ),
  action: Type.Optional(Action),
  ...pageQuery('Entries'),
})

export const AuditList = Type.Array(AuditEntry, { description: 'Entries, newest first' })

/** An entry as far as the following concerns. */
interface OriginOfEntry { actorId: string | null, userId: string | null, address: string, userAgent: string }

/**
 * Returns an entry as the owner of the account sees it, who must not see the address and browser of an admin who
 * changed it. Those of a client that nobody knows, such as one whose login failed, remain visible.
 */
export function forOwner<Entry extends OriginOfEntry> (entry: Entry): Entry {
  const isByAnotherUser = entry.actorId !== null && entry.actorId !== entry.userId
  return isByAnotherUser ? { ...entry, address: '', userAgent: '' } : entry
}

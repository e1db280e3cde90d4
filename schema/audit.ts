import { Type } from '@sinclair/typebox'
import { Id, Instant } from './text.ts'

/** What the account log knows of. */
export const auditActions = [
  'login', 'login.failed', 'logout',
  'session.refresh-reuse', 'session.end',
  'password.change', 'password.change-failed', 'password.reset-request', 'password.reset',
  'user.create', 'user.invite', 'user.email-change', 'user.role-change', 'user.delete',
  'keys.rotate',
  // A request that was answered 403 or 429: of those from one source, one a minute.
  'access.denied', 'access.throttled',
] as const

export type AuditAction = typeof auditActions[number]

const Action = Type.Unsafe<AuditAction>({ type: 'string', enum: auditActions })
const nullable = (description: string) => Type.Unsafe<string | null>({ type: ['string', 'null'], description })

/** An entry of the account log. */
export const AuditEntry = Type.Object({
  id: Id,
  action: Action,
  at: Instant,
  actorId: nullable('Who did it; null where nobody was known'),
  userId: nullable('To whose account it happened; null where there is no such account'),
  sessionId: nullable('The session it happened in, or to'),
  address: Type.String({ description: 'Where it came from; empty where that is not for the reader' }),
  userAgent: Type.String({ description: 'What it came from; empty where that is not for the reader' }),
}, { title: 'AuditEntry', description: 'Who did what and when' })

/** GET /api/audit. */
export const ListAudit = Type.Object({
  user: Type.Optional(Type.String({ description: 'Only what happened to the account of this user; only an admin may name another' })),
  action: Type.Optional(Action),
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'Entries a page' }),
  after: Type.Optional(Type.String({ format: 'cursor', description: 'Cursor of the page, from the Link of the one before' })),
})

export const AuditList = Type.Array(AuditEntry, { description: 'Entries, newest first' })

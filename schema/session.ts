import { Type } from '@sinclair/typebox'
import { Id, Instant } from './text.ts'

/** A session, as its user sees it (contract 4.4). */
export const Session = Type.Object({
  id: Id,
  createdAt: Instant,
  lastUsedAt: Instant,
  expiresAt: Instant,
  address: Type.String({ description: 'The IP address that it was last refreshed from' }),
  userAgent: Type.String({ description: 'The `User-Agent` that it was last refreshed by; empty where there was none' }),
  current: Type.Boolean({ description: 'Whether it is the one of this request' }),
}, { title: 'Session', description: 'A session that has neither ended nor expired' })

export const SessionList = Type.Array(Session, { description: 'Sessions, newest first' })

/** DELETE /api/auth/sessions/{id} (contract 4.5). */
export const SessionParams = Type.Object({ id: Type.String() })

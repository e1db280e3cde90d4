import { Type } from '@sinclair/typebox'
import { Id, Instant } from '../strings/text.ts'
import { defineError } from '../http/errors.ts'

/** The `amr` of a session whose user was authenticated with several factors (RFC 8176). */
export const MULTI_FACTOR = 'mfa'

export const InvalidSession = defineError('INVALID_SESSION', 'The session has ended: log in again', 401)
export const SessionNotFound = defineError('SESSION_NOT_FOUND', 'Session not found', 404)

/** A session, as lists of sessions show it (contract 4.4, 11.4). */
export const Session = Type.Object({
  id: Id,
  createdAt: Instant,
  lastUsedAt: Instant,
  expiresAt: Instant,
  amr: Type.Array(
    Type.String(), {
      description: 'How the user was authenticated (RFC 8176): `pwd`, `email`, `otp`, `pop`, `user`, `mfa`, `fed`',
    }
  ),
  authTime: Instant,
  address: Type.String({ description: 'The IP address of the last login or refresh' }),
  userAgent: Type.String({ description: 'The `User-Agent` of the last login or refresh; empty if there was none' }),
  console: Type.Boolean({ description: 'Whether it is a session of the admin console' }),
  current: Type.Boolean({ description: 'Whether the access token of this request belongs to it' }),
}, { title: 'Session', description: 'A session that has neither ended nor expired' })

export const SessionList = Type.Array(Session, { description: 'Sessions, newest first' })

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * What a session's cookie says: its id, a random secret that is stored hashed, how often the cookie has been rotated,
 * and a signature of all that by the session's rotation key, which never leaves the database. So the next cookie is
 * the same for all who refresh at once, an old one is known as such whatever its age, without a history, and nobody
 * makes a newer one from an old one. Whoever reads the database alone makes none at all.
 */
export interface SessionCookie {
  readonly id: string
  readonly secret: string
  readonly rotations: number
  readonly signature: string
}

const format = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]{43})\.(0|[1-9]\d{0,8})\.([\w-]{43})$/

/** Reads a cookie's value; `undefined` where it cannot be one of ours. */
export function readSessionCookie (value: string): SessionCookie | undefined {
  const match = format.exec(value) as [string, string, string, string, string] | null
  return match ? { id: match[1], secret: match[2], rotations: Number(match[3]), signature: match[4] } : undefined
}

/** The value of a cookie, rotated so many times. */
export function writeSessionCookie ({ id, secret, rotations }: Omit<SessionCookie, 'signature'>, rotationKey: Uint8Array): string {
  const signed = `${id}.${secret}.${rotations}`
  return `${signed}.${createHmac('sha256', rotationKey).update(signed).digest('base64url')}`
}

/** Whether a cookie is one that the session once had, or has. */
export function isGenuine (cookie: SessionCookie, rotationKey: Uint8Array): boolean {
  const genuine = readSessionCookie(writeSessionCookie(cookie, rotationKey))!
  return timingSafeEqual(Buffer.from(cookie.signature), Buffer.from(genuine.signature))
}

/** The secret of a new session, and the key that its cookies are signed with. */
export const createSecrets = () => ({ secret: randomBytes(32).toString('base64url'), rotationKey: randomBytes(32) })

/** A secret as it is stored. A slow hash is for what people choose. */
export const hashSecret = (secret: string): Uint8Array => createHash('sha256').update(secret).digest()

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * The content of a session cookie: the session's id, a random secret of which only the hash is stored, the number of
 * rotations, and a signature of these three by the session's rotation key, which never leaves the database.
 *
 * The next cookie follows from the present one, so concurrent refreshes all get the same. An old cookie is recognised
 * whatever its age, without a stored history. An old cookie is not enough to make a newer one, since that takes the
 * rotation key, and the database is not enough to make any cookie, since that takes the secret.
 */
export interface SessionCookie {
  readonly id: string
  readonly secret: string
  readonly rotations: number
  readonly signature: string
}

/**
 * Returns the values of all cookies of a name in a `Cookie` header (RFC 6265 4.2). Names are compared as a whole and
 * with their case. The double quotes that a value may have are not part of it.
 */
export function readCookies (header: string, name: string): string[] {
  return header.split(';').flatMap((pair) => {
    const [, given, value] = /^[ \t]*([^=]*?)[ \t]*=[ \t]*(.*?)[ \t]*$/s.exec(pair) ?? []
    return given === name ? [/^"(.*)"$/s.exec(value!)?.[1] ?? value!] : []
  })
}

const format = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]{43})\.(0|[1-9]\d{0,8})\.([\w-]{43})$/

/** Parses the value of a cookie. Returns undefined if it does not have the format of a session cookie. */
export function readSessionCookie (value: string): SessionCookie | undefined {
  const match = format.exec(value) as [string, string, string, string, string] | null
  return match ? { id: match[1], secret: match[2], rotations: Number(match[3]), signature: match[4] } : undefined
}

/** Returns the value of a session's cookie after the given number of rotations. */
export function writeSessionCookie (
  { id, secret, rotations }: Omit<SessionCookie, 'signature'>, rotationKey: Uint8Array
): string {
  const signed = `${id}.${secret}.${rotations}`
  return `${signed}.${createHmac('sha256', rotationKey).update(signed).digest('base64url')}`
}

/** Returns whether a cookie is the session's present one or one of its former ones. */
export function isGenuine (cookie: SessionCookie, rotationKey: Uint8Array): boolean {
  const genuine = readSessionCookie(writeSessionCookie(cookie, rotationKey))!
  return timingSafeEqual(Buffer.from(cookie.signature), Buffer.from(genuine.signature))
}

/** Returns the secret of a new session, and the key that signs its cookies. */
export const createSecrets = () => ({ secret: randomBytes(32).toString('base64url'), rotationKey: randomBytes(32) })

/**
 * Returns the hash of a secret, which is what the database stores. A slow hash is only needed for secrets that people
 * choose.
 */
export const hashSecret = (secret: string): Uint8Array => createHash('sha256').update(secret).digest()

/** The parts of the cookie of a session of the console, which is never rotated. */
export type ConsoleCookie = Pick<SessionCookie, 'id' | 'secret'>

const consoleFormat = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]{43})$/

/** Parses the value of a cookie of the console. Returns undefined if it does not have that format. */
export function readConsoleCookie (value: string): ConsoleCookie | undefined {
  const match = consoleFormat.exec(value) as [string, string, string] | null
  return match ? { id: match[1], secret: match[2] } : undefined
}

/** Returns the value of the cookie of a session of the console. */
export const writeConsoleCookie = ({ id, secret }: ConsoleCookie): string => `${id}.${secret}`

/**
 * Returns what is hashed of the secret of such a session. It differs from that of other sessions, so that neither
 * works in the place of the other: a refresh would extend it.
 */
export const consoleSecret = (secret: string): string => `console ${secret}`

import { createHmac, hash, hkdfSync } from 'node:crypto'
import { defineError, InvalidInput } from './errors.ts'

export const IdempotencyKeyReused = defineError(
  'IDEMPOTENCY_KEY_REUSED', 'The idempotency key was used for a different request', 422
)
export const IdempotencyKeyInUse =
  defineError('IDEMPOTENCY_KEY_IN_USE', 'A request with this idempotency key is in progress, try again', 409)
export const Gone = defineError(
  'GONE', 'What the first request with this idempotency key has written was deleted since', 410
)

const LONGEST = 255
const BARE = /^[\x21\x23-\x7e]+$/
const QUOTED = /^"(?:[\x21\x23-\x5b\x5d-\x7e]|\\["\\])+"$/

/**
 * Returns the key of the field `Idempotency-Key` (contract 10.4), which may be quoted like a string of RFC 9651 or
 * bare. Undefined without the field. Throws `InvalidInput`.
 * @param name what the problem is reported for
 */
export function readIdempotencyKey (field: unknown, name = 'Idempotency-Key'): string | undefined {
  if (field === undefined) return undefined
  if (typeof field === 'string') {
    const key = QUOTED.test(field) ? field.slice(1, -1).replace(/\\(.)/g, '$1') : BARE.test(field) ? field : ''
    if (key !== '' && key.length <= LONGEST) return key
  }
  throw new InvalidInput(`${name} must be 1 to ${LONGEST} visible ASCII characters`)
}

/** The member of a route's schema that says that its requests may have an idempotency key. */
export const IDEMPOTENT = 'x-idempotent'

/** A request with an idempotency key. */
export interface KeyedRequest {
  /** The actor's id. Every actor has keys of their own. */
  actorId: string
  key: string
  /** Which of several mutations it is. Empty for a request that is only one write. */
  part?: string
  /** The method and the path, or the like. */
  operation: string
  /** The parsed body, without the password: what makes two requests the same. */
  content: unknown
  password?: string | undefined
}

/** Under what the result of a write is stored. */
export interface ResultKey {
  readonly key: string
  readonly part: string
  readonly fingerprint: string
}

const WHOLE = toUuid('')

/** Returns under what the result of a request is stored. Throws `InvalidInput` if the content is nested too deeply. */
export type ToResultKey = (request: KeyedRequest) => ResultKey

/**
 * Creates the function that returns the keys of results. Neither the idempotency key nor the request can be derived
 * from them, unless the idempotency key can be guessed. Even then the password cannot be guessed: it is only included
 * as a code that needs the mount's secret. Without a secret, requests that differ in the password only are the same.
 */
export function createToResultKey (secret: string | undefined): ToResultKey {
  const derived = secret === undefined
    ? undefined
    : Buffer.from(hkdfSync('sha256', secret, '', 'usher idempotency key', 40))
  const toCode = (password: string) => derived &&
    `.${derived.toString('hex', 32)}.${createHmac('sha256', derived.subarray(0, 32)).update(password).digest('base64url').slice(0, 22)}`
  return ({ actorId, key, part = '', operation, content, password }) => {
    const request = hash(
      'sha256', `${key}\n${operation}\n${password !== undefined}\n${toCanonical(content)}`, 'base64url'
    )
    return {
      key: toUuid(`${actorId}\n${key}`),
      part: part === '' ? WHOLE : toUuid(part),
      fingerprint: `${request}${password === undefined ? '' : toCode(`${key}\n${password}`) ?? ''}`,
    }
  }
}

/**
 * Returns whether two fingerprints are of the same request. The codes of passwords are only compared if the same secret
 * made both, so that the secret can be changed.
 */
export function isSameRequest (one: string, other: string): boolean {
  const [[request, secret, code], [otherRequest, otherSecret, otherCode]] = [one.split('.'), other.split('.')]
  return request === otherRequest && (secret !== otherSecret || code === otherCode)
}

// UUIDs are compared and indexed as 16 bytes.
function toUuid (text: string): string {
  const digits = hash('sha256', text, 'hex')
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20, 32)}`
}

// The order of members does not matter.
function toCanonical (content: unknown): string {
  try {
    return JSON.stringify(content, (_, value: unknown) => isPlain(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => one < other ? -1 : 1))
      : value) ?? ''
  } catch (error) {
    // The recursion has used up the stack.
    if (error instanceof RangeError) throw new InvalidInput('body is nested too deeply')
    throw error
  }
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

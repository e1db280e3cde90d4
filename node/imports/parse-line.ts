import { NIL } from 'uuid'
import { isUuid } from '../../db/driver/postgres.ts'
import { InvalidInput } from '../../schema/http/errors.ts'

const INSTANT =
  /^(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))T((?:[01]\d|2[0-3])(?::[0-5]\d){2})(?:\.(\d{1,9}))?(Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/
// The clock of the other system may be ahead of that of this machine.
const CLOCK_TOLERANCE_MS = 300_000
// How many problems of a line are told.
const MAX_PROBLEMS = 20
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A line is not imported. Its message says why. */
export class RejectedLine extends Error {}

/**
 * Returns what a rejected line contains, as members of a JSON object.
 * @param member which of them has what was given, such as `user`
 */
export function contentOf (bytes: Buffer, member: string): string {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    return `"base64":"${bytes.toString('base64')}"`
  }
  try {
    const given: unknown = JSON.parse(text)
    // As it was given, so that it can be imported once it is corrected.
    if (typeof given === 'object' && given !== null) return `"${member}":${text}`
  } catch {
    // It is shown as text.
  }
  return `"text":${JSON.stringify(text)}`
}

/** Reads a line of an import. Returns undefined for a blank line. Throws `RejectedLine`. */
export type LineParser<Parsed> = (bytes: Buffer) => Parsed | undefined

/**
 * Creates a function that reads a line of an import.
 * @param check returns what the import stores of the object of a line, or throws `InvalidInput`
 */
export const createLineParser = <Parsed>(check: (given: object) => Parsed): LineParser<Parsed> => (bytes) => {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    throw new RejectedLine('The line is not UTF-8')
  }
  if (text.trim() === '') return undefined
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new RejectedLine('The line is not JSON')
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new RejectedLine('The line is not a JSON object')
  }
  try {
    return check(given)
  } catch (error) {
    if (error instanceof InvalidInput) throw new RejectedLine(tellProblems(error.errors))
    // Values that are nested so deeply that they cannot be copied.
    if (error instanceof RangeError) throw new RejectedLine('The line has too many levels')
    throw error
  }
}

/** Returns what is wrong with a line as one text, which is short enough to be read. */
export const tellProblems = (problems: readonly string[]): string =>
  [...problems.slice(0, MAX_PROBLEMS), ...problems.length > MAX_PROBLEMS ? ['…'] : []].join('; ')

/**
 * Returns the members of an object that have a value: exports of other systems write null for what is absent. Throws
 * `InvalidInput` if some are unknown.
 * @param what what has these members, such as `a user`
 */
export function membersOf (given: object, known: object, what: string): Record<string, unknown> {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name))
  if (unknown.length > 0) {
    throw new InvalidInput(...unknown.slice(0, 5).map((name) => `${name.slice(0, 40)} is not a member of ${what}`))
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
}

/** Returns the id that a line gives, in lower case. Throws `InvalidInput`. */
export function readId (text: string): string {
  if (!isUuid(text) || text === NIL) throw new InvalidInput('id must be a UUID')
  return text.toLowerCase()
}

/**
 * Returns the time of a `createdAt`, in UTC, with the microseconds that PostgreSQL stores, of which a `Date` would lose
 * some. Throws `InvalidInput`.
 * @param now milliseconds since 1970
 */
export function readInstant (text: string, now: number): string {
  const [, day, time, fraction = '', zone] = INSTANT.exec(text) ?? []
  // A day such as 30 February does not survive.
  const midnight = day === undefined ? NaN : Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) {
    throw new InvalidInput('createdAt must be a date and time of RFC 3339, such as 2026-01-31T12:00:00Z')
  }
  const msecs = Date.parse(`${day}T${time}${zone}`)
  if (msecs < 0 || msecs > now + CLOCK_TOLERANCE_MS) throw new InvalidInput('createdAt must be between 1970 and now')
  return `${new Date(msecs).toISOString().slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`
}

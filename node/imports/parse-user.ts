import { Type } from '@sinclair/typebox'
import { NIL } from 'uuid'
import { isUuid } from '../../db/driver/postgres.ts'
import type { ImportedUser } from '../../db/users/import-users.ts'
import {
  MAX_HASH_LENGTH, parseHash, UnsupportedHash, type FirebaseParameters, type HashLimits, type StoredHash,
} from '../../schema/sign-in/passwords/stored-hash.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import { createParser } from '../../schema/http/validator.ts'
import { inputsOf } from '../../schema/users/members.ts'
import { createExtension } from '../../schema/users/extend-user.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { noRoles, type Roles } from '../../schema/options/roles.ts'

/** A line of an import as it is checked, without a password that is not hashed: those do not belong into a file. */
const ImportLine = Type.Object({
  ...inputsOf('import'),
  passwordHash: Type.Optional(Type.String({ maxLength: MAX_HASH_LENGTH })),
})

const INSTANT =
  /^(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))T((?:[01]\d|2[0-3])(?::[0-5]\d){2})(?:\.(\d{1,9}))?(Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/
// The clock of the other system may be ahead of that of this machine.
const CLOCK_TOLERANCE_MS = 300_000
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A user of a line, with the hash that the user's password has, if there is one. */
export interface ParsedUser { readonly user: ImportedUser, readonly hash: StoredHash | undefined }

/** A line is not imported. Its message says why. */
export class RejectedLine extends Error {}

/** Returns what a rejected line contains, as members of a JSON object. */
export function contentOf (bytes: Buffer): string {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    return `"base64":"${bytes.toString('base64')}"`
  }
  try {
    const given: unknown = JSON.parse(text)
    // As it was given, so that it can be imported once it is corrected.
    if (typeof given === 'object' && given !== null) return `"user":${text}`
  } catch {
    // It is shown as text.
  }
  return `"text":${JSON.stringify(text)}`
}

export interface ParserOptions {
  readonly fields: UserFields
  /** Those of the host. */
  readonly roles?: Roles
  readonly limits: HashLimits
  readonly firebase?: FirebaseParameters | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

/**
 * Creates a function that reads a line of an import. It returns undefined for a blank line, and throws `RejectedLine`.
 */
export function createUserParser ({ fields, roles = noRoles, limits, firebase, now }: ParserOptions) {
  const properties = { ...ImportLine.properties, ...Object.fromEntries(fields.map(({ name, input }) => [name, input])) }
  const parse = createParser(createExtension({ userFields: noFields, roles })({ ...ImportLine, properties }))

  return (bytes: Buffer): ParsedUser | undefined => {
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
      if (error instanceof InvalidInput) throw new RejectedLine(error.message)
      // Values that are nested so deeply that they cannot be copied.
      if (error instanceof RangeError) throw new RejectedLine('The line has too many levels')
      throw error
    }
  }

  function check (given: object): ParsedUser {
    const unknown = Object.keys(given).filter((name) => !Object.hasOwn(properties, name))
    if (unknown.length > 0) throw new InvalidInput(...unknown.slice(0, 5).map((name) => `${name.slice(0, 40)} is not a member of a user`))
    // Exports of other systems write null for what is absent.
    const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
    const {
      id, emailVerified = false, role = 'user', kind = 'person', disabled = false, createdAt, passwordHash, ...rest
    } = parse(present)
    if (id !== undefined && (!isUuid(id) || id === NIL)) throw new InvalidInput('id must be a UUID')
    if (kind === 'service' && passwordHash !== undefined) {
      throw new InvalidInput('passwordHash must be absent, because a service user has no password')
    }
    const hash = passwordHash === undefined ? undefined : readHash(passwordHash)
    return {
      user: {
        ...rest,
        id: id?.toLowerCase(),
        emailVerified,
        role,
        kind,
        disabled,
        createdAt: createdAt === undefined ? undefined : readInstant(createdAt),
        passwordHash: hash?.text ?? null,
      },
      hash,
    }
  }

  function readHash (text: string): StoredHash {
    try {
      return parseHash(text, limits, firebase)
    } catch (error) {
      throw error instanceof UnsupportedHash ? new InvalidInput(`passwordHash ${error.message}`) : error
    }
  }

  function readInstant (text: string): string {
    const [, day, time, fraction = '', zone] = INSTANT.exec(text) ?? []
    // A day such as 30 February does not survive.
    const midnight = day === undefined ? NaN : Date.parse(`${day}T00:00:00Z`)
    if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) {
      throw new InvalidInput('createdAt must be a date and time of RFC 3339, such as 2026-01-31T12:00:00Z')
    }
    const msecs = Date.parse(`${day}T${time}${zone}`)
    if (msecs < 0 || msecs > now + CLOCK_TOLERANCE_MS) throw new InvalidInput('createdAt must be between 1970 and now')
    // PostgreSQL stores microseconds, more than a `Date` has.
    return `${new Date(msecs).toISOString().slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`
  }
}

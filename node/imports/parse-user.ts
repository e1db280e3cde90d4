import { Type } from '@sinclair/typebox'
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
import { createLineParser, membersOf, readId, readInstant, type LineParser } from './parse-line.ts'

/** A line of an import as it is checked, without a password that is not hashed: those do not belong into a file. */
const ImportLine = Type.Object({
  ...inputsOf('import'),
  passwordHash: Type.Optional(Type.String({ maxLength: MAX_HASH_LENGTH })),
})

/** A user of a line, with the hash that the user's password has, if there is one. */
export interface ParsedUser { readonly user: ImportedUser, readonly hash: StoredHash | undefined }

export interface ParserOptions {
  readonly fields: UserFields
  /** Those of the host. */
  readonly roles?: Roles
  readonly limits: HashLimits
  readonly firebase?: FirebaseParameters | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Creates a function that reads a line of an import of users. */
export function createUserParser (
  { fields, roles = noRoles, limits, firebase, now }: ParserOptions
): LineParser<ParsedUser> {
  const properties = { ...ImportLine.properties, ...Object.fromEntries(fields.map(({ name, input }) => [name, input])) }
  const parse = createParser(createExtension({ userFields: noFields, roles })({ ...ImportLine, properties }))

  return createLineParser(check)

  function check (given: object): ParsedUser {
    const {
      id, emailVerified = false, role = 'user', kind = 'person', disabled = false, createdAt, passwordHash, ...rest
    } = parse(membersOf(given, properties, 'a user'))
    if (kind === 'service' && passwordHash !== undefined) {
      throw new InvalidInput('passwordHash must be absent, because a service user has no password')
    }
    const hash = passwordHash === undefined ? undefined : readHash(passwordHash)
    return {
      user: {
        ...rest,
        id: id === undefined ? undefined : readId(id),
        emailVerified,
        role,
        kind,
        disabled,
        createdAt: createdAt === undefined ? undefined : readInstant(createdAt, now),
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
}

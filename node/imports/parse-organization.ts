import { Type } from '@sinclair/typebox'
import { withFields } from '../../schema/fields/extend.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Organizations } from '../../schema/options/organizations.ts'
import { AddMember, checkOrganization, CreateOrganization } from '../../schema/organizations/organizations.ts'
import { KnownEmail } from '../../schema/strings/text.ts'
import { createLineParser, membersOf, readId, readInstant, type LineParser } from './parse-line.ts'

const ImportLine = Type.Object({
  ...Type.Required(CreateOrganization).properties,
  id: Type.Optional(Type.String()),
  createdAt: Type.Optional(Type.String({ maxLength: 40 })),
  members: Type.Array(Type.Object({
    userId: Type.Optional(AddMember.properties.userId),
    email: Type.Optional(KnownEmail),
    role: AddMember.properties.role,
  }), { minItems: 1 }),
})

/** A member of a line: a user by id, in lower case, or by address. */
export type ParsedMember = ({ readonly userId: string } | { readonly email: string }) & { readonly role: string }

/**
 * An organisation of a line, with the values of the host's fields as further members. Whether its members are users is
 * not known yet.
 */
export interface ParsedOrganization {
  readonly id: string | undefined
  readonly name: string
  readonly slug: string
  readonly createdAt: string | undefined
  readonly members: readonly ParsedMember[]
}

/**
 * Creates a function that reads a line of an import of organisations.
 * @param now milliseconds since 1970
 */
export function createOrganizationParser (
  { roles, maxMembers, fields }: Pick<Organizations, 'roles' | 'maxMembers' | 'fields'>, now: number
): LineParser<ParsedOrganization> {
  const schema = withFields(ImportLine, fields, 'input') as typeof ImportLine
  const parse = createParser(schema)
  const inMember = ImportLine.properties.members.items.properties

  return createLineParser((given) => {
    const { id, name, slug, createdAt, members, ...values } =
      parse(withoutNulls(membersOf(given, schema.properties, 'an organisation')))
    checkOrganization({ name, slug })
    if (members.length > maxMembers) throw new InvalidInput(`members must be at most ${maxMembers}`)
    return {
      ...values,
      id: id === undefined ? undefined : readId(id),
      name,
      slug,
      createdAt: createdAt === undefined ? undefined : readInstant(createdAt, now),
      members: checkMembers(members),
    }
  })

  // What is no object is left to the validator.
  function withoutNulls ({ members, ...rest }: Record<string, unknown>): object {
    if (!Array.isArray(members)) return { ...rest, ...members !== undefined && { members } }
    return {
      ...rest,
      members: members.map((member: unknown) => typeof member === 'object' && member !== null && !Array.isArray(member)
        ? membersOf(member, inMember, 'a member of an organisation')
        : member),
    }
  }

  function checkMembers (members: { userId?: string, email?: string, role: string }[]): ParsedMember[] {
    const problems: string[] = []
    const checked = members.flatMap(({ userId, email, role }, place): ParsedMember[] => {
      if (!roles.has(role)) problems.push(`members.${place}.role must be one of ${[...roles.keys()].join(', ')}`)
      if (userId !== undefined && email === undefined) return [{ userId: userId.toLowerCase(), role }]
      if (userId === undefined && email !== undefined) return [{ email, role }]
      problems.push(`members.${place} must have either userId or email`)
      return []
    })
    if (problems.length > 0) throw new InvalidInput(...problems)
    return checked
  }
}

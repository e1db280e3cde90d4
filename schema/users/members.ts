import { Type, type Static, type TObject, type TOptional, type TSchema } from '@sinclair/typebox'
import type { PageText } from '../options/page-texts.ts'
import type { HostRole } from '../options/register.ts'
import { Email, Id, Instant, Name, NewPassword } from '../strings/text.ts'

/** The roles of every mount. A host adds its own with the option `roles` (contract 20.1). */
export const roles = ['admin', 'user'] as const

/**
 * The role of a user: an admin has every permission, a user only those over the own record (see
 * `schema/options/policy.ts`), and one of the host's what it lists.
 */
export type Role = typeof roles[number] | HostRole

/** Who a user is: a person, or a program, which has no password and acts with API keys (contract 17.1). */
export const userKinds = ['person', 'service'] as const

export type UserKind = typeof userKinds[number]

// These are enums rather than unions of literals, because a union reports one error for each literal. A mount with
// roles of the host finds this enum by its list (`extend-user.ts`).
const Role = Type.Unsafe<Role>({ type: 'string', enum: roles })
const Kind = Type.Unsafe<UserKind>({ type: 'string', enum: userKinds })

/** A request in which a member of a user may be: also a line of `users import`. */
type Request = 'create' | 'replace' | 'patch' | 'signUp' | 'import'

/** A member of users. All that lists members of users is derived from `members`. */
export interface Member {
  /** The column of `users`. */
  readonly column?: string
  /** The type of the column, of a member that creating and replacing a user set. */
  readonly sqlType?: string
  /** The schema in responses. Absent: it is never shown. */
  readonly output?: TSchema
  /** Whether it concerns the account, so that only readers with `users:read-email` see it. By default, all see it. */
  readonly ofAccount?: true
  /** The schema in requests. Without a value, a member that may have none is null. */
  readonly input?: TSchema
  /** The requests that may have it, and whether they need it. */
  readonly in?: { readonly [Each in Request]?: 'required' | 'optional' }
  /** The schema in the data of `user.created` and `user.updated`. Absent: they do not have it. */
  readonly event?: TSchema
  /** Its field in the forms of the console. Absent: they have none. */
  readonly form?: MemberForm
}

/** How forms show a member of a user. */
export interface MemberForm {
  readonly label: string
  /** By default, a text. */
  readonly type?: 'email' | 'role'
  readonly options?: readonly string[]
  readonly required?: true
  /** Its field in the profile of the page of accounts. Absent: that has none, or one with rules of its own. */
  readonly page?: { readonly label: PageText, readonly autocomplete: string }
}

const required = {
  create: 'required', replace: 'required', patch: 'optional', signUp: 'required', import: 'required',
} as const

/**
 * The members of a user, and of requests about users, in the order of responses. The fields of hosts follow them
 * (`user-fields.ts`). How to add one is in docs/architecture.md.
 */
export const members = {
  id: { column: 'id', output: Id, input: Type.String(), in: { import: 'optional' } },
  name: {
    column: 'name',
    sqlType: 'text',
    output: Type.String(),
    input: Name,
    in: required,
    event: Type.String(),
    form: { label: 'Name', required: true, page: { label: 'name', autocomplete: 'name' } },
  },
  email: {
    column: 'email',
    sqlType: 'text',
    output: Type.String({ description: 'Absent if the reader may not see it' }),
    ofAccount: true,
    input: Email,
    in: required,
    event: Type.String({ description: 'The address of the user' }),
    form: { label: 'E-mail address', type: 'email', required: true },
  },
  emailVerified: {
    column: 'email_verified',
    output: Type.Boolean({
      description: 'Whether a link that was sent to this address was used. Absent like `email`',
    }),
    ofAccount: true,
    input: Type.Boolean(),
    in: { import: 'optional' },
    event: Type.Boolean(),
  },
  role: {
    column: 'role',
    sqlType: 'text',
    output: Role,
    input: Role,
    in: { create: 'optional', replace: 'optional', patch: 'optional', import: 'optional' },
    event: Role,
    form: { label: 'Role', type: 'role' },
  },
  password: { input: NewPassword, in: { create: 'optional', signUp: 'optional' } },
  // It never changes.
  kind: {
    column: 'account_kind',
    output: Type.Unsafe<UserKind>({
      ...Kind, description: 'Whether it is a person, or a service, which has no password and acts with API keys',
    }),
    input: Kind,
    in: { create: 'optional', import: 'optional' },
  },
  disabled: {
    column: 'disabled',
    output: Type.Boolean({ description: 'Whether an admin has disabled the user. Absent like `email`' }),
    ofAccount: true,
    input: Type.Boolean({ description: 'Whether the user is disabled. Only an admin may set it' }),
    in: { patch: 'optional', import: 'optional' },
    event: Type.Boolean(),
  },
  createdAt: { column: 'created_at', output: Instant, input: Type.String(), in: { import: 'optional' } },
  updatedAt: { column: 'updated_at', output: Instant },
} as const satisfies Record<string, Member>

export type Members = typeof members

/** The names of the members that have something in the table, such as `output`. */
type NameWith<Part extends keyof Member> =
  { [Name in keyof Members]: Members[Name] extends Record<Part, unknown> ? Name : never }[keyof Members]

/** The names of the members that a request may have. */
type NameIn<Kind extends Request> =
  { [Name in keyof Members]: Members[Name] extends { in: Record<Kind, unknown> } ? Name : never }[keyof Members]

/** The members that responses have. */
export type ShownMember = NameWith<'output'>

/** The members that creating and replacing a user set. */
export type WritableMember = NameIn<'replace'>

/** The members that only readers with `users:read-email` see. */
export type AccountMember = NameWith<'ofAccount'>

const all: Readonly<Record<string, Member>> = members

/** Returns the names of the members that have something in the table. */
const namesWith = <Part extends keyof Member>(part: Part): NameWith<Part>[] =>
  (Object.keys(members) as NameWith<Part>[]).filter((name) => all[name]?.[part] !== undefined)

const namesIn = <Kind extends Request>(kind: Kind): NameIn<Kind>[] =>
  (Object.keys(members) as NameIn<Kind>[]).filter((name) => all[name]?.in?.[kind] !== undefined)

export const shownMembers = namesWith('output')
export const accountMembers = namesWith('ofAccount')
export const writableMembers = namesIn('replace')
/** The members that lines of `users import` may have, besides the hash of the password. */
export const importedMembers = namesIn('import')
/** The members that the data of events about users have. */
export const eventMembers = namesWith('event')
/** The members that the form of the console has. */
export const formMembers = namesWith('form')

const propertiesOf = <Properties>(
  names: readonly (keyof Properties & keyof Members)[], schemaOf: (member: Member) => TSchema
) => Object.fromEntries(names.map((name) => [name, schemaOf(members[name])])) as Properties

type Outputs = { [Name in ShownMember]:
  Members[Name] extends { ofAccount: true } ? TOptional<Members[Name]['output']> : Members[Name]['output'] }

/** The properties of a user in responses. */
export const outputs = propertiesOf<Outputs>(shownMembers, ({ output, ofAccount }) =>
  ofAccount ? Type.Optional(output!) : output!)

type Events = { [Name in NameWith<'event'>]: Members[Name]['event'] }

/** The properties of a user in the data of events. */
export const eventProperties = propertiesOf<Events>(eventMembers, ({ event }) => event!)

type Inputs<Kind extends Request> = { [Name in NameIn<Kind>]:
  Members[Name] extends { input: infer Input extends TSchema }
    ? Members[Name] extends { in: Record<Kind, 'required'> } ? Input : TOptional<Input>
    : never }

/** Returns the properties of a request about a user. */
export const inputsOf = <Kind extends Request>(kind: Kind): Inputs<Kind> =>
  propertiesOf<Inputs<Kind>>(namesIn(kind), ({ input, in: requests }) => {
    const schema = kind === 'patch' ? withoutNull(input!) : input!
    return requests?.[kind] === 'required' ? schema : Type.Optional(schema)
  })

// All members of a patch may be absent, and null is a value of those only that may have none.
const withoutNull = (schema: TSchema): TSchema =>
  [schema['type']].flat().includes('null') ? schema : { ...schema, notNull: true }

/** A line of `users import`, without the hash of the password. */
export type ImportedMembers = Static<TObject<Inputs<'import'>>>

/** Returns whether a text may have line breaks, which a field of one line would lose. */
export const hasLines = (schema: object = {}): boolean => Reflect.get(schema, 'text') === 'block'

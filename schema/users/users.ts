import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Email, exampleUser, Id, Instant, Name, NewPassword } from '../strings/text.ts'
import { versions } from '../runtime/version.ts'
import { content } from '../http/reply.ts'
import { defineError } from '../http/errors.ts'
import type { FieldValues } from './user-fields.ts'

export const UserNotFound = defineError('USER_NOT_FOUND', 'User not found', 404)
export const EmailTaken = defineError('EMAIL_TAKEN', 'This email address is already taken', 409)
export const EmailsHidden = defineError(
  'EMAILS_HIDDEN', 'You may not create users, because you may not see the addresses of others', 403
)
export const LastAdmin = defineError(
  'LAST_ADMIN', 'The last admin can be neither deleted nor demoted nor disabled', 409
)
export const UserInUse = defineError('USER_IN_USE', 'The user cannot be deleted, because other data refers to it', 409)
export const UserDisabled = defineError('USER_DISABLED', 'The user is disabled', 409)

export const roles = ['admin', 'user'] as const

/**
 * The role of a user: an admin has every permission, a user only those over the own record (see
 * `schema/options/policy.ts`).
 */
export type Role = typeof roles[number]

/** Who a user is: a person, or a program, which has no password and acts with API keys (contract 17.1). */
export const userKinds = ['person', 'service'] as const

export type UserKind = typeof userKinds[number]

export const ServiceUser = defineError(
  'SERVICE_USER', 'A service user has no password and no sessions: create an API key for it', 409
)

// This is an enum rather than a union of literals, because a union reports one error for each literal.
const Role = Type.Unsafe<Role>({ type: 'string', enum: roles })
const Kind = Type.Unsafe<UserKind>({ type: 'string', enum: userKinds })

/** A user record in responses. */
export const User = Type.Object({
  id: Id,
  name: Type.String(),
  email: Type.Optional(Type.String({ description: 'Absent if the reader may not see it' })),
  emailVerified: Type.Optional(
    Type.Boolean({ description: 'Whether a link that was sent to this address was used. Absent like `email`' })
  ),
  role: Role,
  kind: Type.Unsafe<UserKind>({
    ...Kind, description: 'Whether it is a person, or a service, which has no password and acts with API keys',
  }),
  disabled: Type.Optional(Type.Boolean({ description: 'Whether an admin has disabled the user. Absent like `email`' })),
  createdAt: Instant,
  updatedAt: Instant,
}, { title: 'User', description: 'A user' })

/**
 * A user with every member, also those that other readers may not see, and with the fields that the host has
 * registered.
 */
export type UsherUser = Required<Static<typeof User>> & FieldValues

/** A user as an actor sees it, who may not see every member. */
export type ShownUser = Static<typeof User> & Partial<FieldValues>

/** The body of POST /api/users (contract 2.3). */
export const CreateUser = Type.Object({
  name: Name,
  email: Email,
  role: Type.Optional(Role),
  password: Type.Optional(NewPassword),
  kind: Type.Optional(Kind),
}, {
  title: 'CreateUser',
  examples: [{ name: exampleUser.name, email: exampleUser.email, role: 'user', password: exampleUser.password }],
})

/** The body of PUT /api/users/{id} (contract 2.4). */
export const ReplaceUser = Type.Object({
  name: Name,
  email: Email,
  role: Type.Optional(Role),
}, { title: 'ReplaceUser', examples: [{ name: exampleUser.name, email: exampleUser.email }] })

const notNull = <Schema extends TSchema>(schema: Schema): Schema => ({ ...schema, notNull: true })

/** The body of PATCH /api/users/{id} (contract 10.3): the members to change. Null is not a value of any of them. */
export const PatchUser = Type.Partial(Type.Object({
  name: notNull(Name),
  email: notNull(Email),
  role: notNull(Role),
  disabled: notNull(Type.Boolean({ description: 'Whether the user is disabled. Only an admin may set it' })),
}), { title: 'PatchUser', examples: [{ name: exampleUser.name }] })

export type CreateUser = Static<typeof CreateUser>
export type ReplaceUser = Static<typeof ReplaceUser>
export type PatchUser = Static<typeof PatchUser>

/** The response of GET /api/users in each of its versions (contract 3). */
export const UserList = content('Users, newest first', versions(User))

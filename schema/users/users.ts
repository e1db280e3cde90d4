import { Type, type Static } from '@sinclair/typebox'
import { exampleUser } from '../strings/text.ts'
import { versions } from '../runtime/version.ts'
import { content } from '../http/reply.ts'
import { defineError } from '../http/errors.ts'
import { inputsOf, outputs } from './members.ts'
import type { FieldValues } from './user-fields.ts'

export { roles, userKinds, type Role, type UserKind } from './members.ts'

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

export const ServiceUser = defineError(
  'SERVICE_USER', 'A service user has no password and no sessions: create an API key for it', 409
)

/** A user record in responses. */
export const User = Type.Object(outputs, { title: 'User', description: 'A user' })

/**
 * A user with every member, also those that other readers may not see, and with the fields that the host has
 * registered.
 */
export type UsherUser = Required<Static<typeof User>> & FieldValues

/** A user as an actor sees it, who may not see every member. */
export type ShownUser = Static<typeof User> & Partial<FieldValues>

/** The body of POST /api/users (contract 2.3). */
export const CreateUser = Type.Object(inputsOf('create'), {
  title: 'CreateUser',
  examples: [{ name: exampleUser.name, email: exampleUser.email, role: 'user', password: exampleUser.password }],
})

/** The body of PUT /api/users/{id} (contract 2.4). */
export const ReplaceUser = Type.Object(
  inputsOf('replace'), { title: 'ReplaceUser', examples: [{ name: exampleUser.name, email: exampleUser.email }] }
)

/** The body of PATCH /api/users/{id} (contract 10.3): the members to change. */
export const PatchUser =
  Type.Object(inputsOf('patch'), { title: 'PatchUser', examples: [{ name: exampleUser.name }] })

export type CreateUser = Static<typeof CreateUser>
export type ReplaceUser = Static<typeof ReplaceUser>
export type PatchUser = Static<typeof PatchUser>

/** The response of GET /api/users in each of its versions (contract 3). */
export const UserList = content('Users, newest first', versions(User))

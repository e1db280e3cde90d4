import { Type, type Static } from '@sinclair/typebox'
import { Email, exampleUser, Id, Instant, line, Name, NewPassword } from './text.ts'
import { versions } from './version.ts'
import { content } from './reply.ts'

export const roles = ['admin', 'user'] as const

/** What a user may be: an admin may do everything, a user looks after their own (see `schema/policy.ts`). */
export type Role = typeof roles[number]

// An enum, not a union of literals: its violation is one error, not one a literal.
const Role = Type.Unsafe<Role>({ type: 'string', enum: roles })

/** A user record, as every reply carries it. */
export const User = Type.Object({
  id: Id,
  name: Type.String(),
  email: Type.String(),
  role: Role,
  createdAt: Instant,
  updatedAt: Instant,
}, { title: 'User', description: 'A user' })

/** POST /api/users (contract 2.3). */
export const CreateUser = Type.Object({
  name: Name,
  email: Email,
  role: Type.Optional(Role),
  password: Type.Optional(NewPassword),
}, { title: 'CreateUser', examples: [{ name: exampleUser.name, email: exampleUser.email, role: 'user', password: exampleUser.password }] })

/** PUT /api/users/{id} (contract 2.4). */
export const ReplaceUser = Type.Object({
  name: Name,
  email: Email,
  role: Type.Optional(Role),
}, { title: 'ReplaceUser', examples: [{ name: exampleUser.name, email: exampleUser.email }] })

export type CreateUser = Static<typeof CreateUser>
export type ReplaceUser = Static<typeof ReplaceUser>

export const UserParams = Type.Object({ id: Type.String() })

/** GET /api/users (contract 2.1). A role that no user has is no error: the answer is empty. */
export const ListUsers = Type.Object({
  role: Type.Optional(line({ description: 'Only users of this role' })),
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'Users a page' }),
  after: Type.Optional(Type.String({ format: 'cursor', description: 'Cursor of the page, from the Link of the one before' })),
})

/** The list in each of its versions (contract 3). */
export const UserList = content('Users, newest first', versions(User))

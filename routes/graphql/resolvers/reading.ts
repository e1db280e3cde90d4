import type { FastifyInstance } from 'fastify'
import { GraphQLScalarType, type GraphQLResolveInfo } from 'graphql'
import type { UserRow } from '../../../db/tables/index.ts'
import { audiences, type Actor, type ReadAction } from '../../../schema/options/policy.ts'
import { denialOf, readerFor } from '../../../plugins/access/policy.ts'
import { hasJson } from '../../../schema/graphql/sdl.ts'
import { accountMembers, type AccountMember } from '../../../schema/users/members.ts'
import { readableFields, type UserField } from '../../../schema/users/user-fields.ts'
import type { GraphQLContext } from '../context.ts'
import { countRows } from '../limits/result-size.ts'

/**
 * Throws `Unauthenticated` or `Forbidden` if the reader of an operation may not read something (contract 11.1). Returns
 * nothing to wait for if anyone may, since a list calls this for each of its rows.
 */
export function authorizeRead (
  context: GraphQLContext, action: ReadAction, ownerId?: string
): Promise<void> | undefined {
  return context.usher.usherAccess.policy.isOpen(action) ? undefined : authorize(context, action, ownerId)
}

async function authorize (context: GraphQLContext, action: ReadAction, ownerId: string | undefined): Promise<void> {
  const { usher: { usherAudit: audit, usherAccess: { callerOf, policy } }, request } = context
  const reader = await actorOfReads(context)
  if (policy.allows(reader, action, ownerId)) return
  if (!context.denial && reader && request) audit.addRejection(callerOf(request, { actor: reader }), 403)
  // All fields of an operation that may not be read throw the same error, since creating it takes longer than
  // everything else about them.
  context.denial ??= denialOf(reader, action)
  throw context.denial
}

/**
 * Returns the actor of an operation, or null. Over a socket, finding the actor verifies the token again. Once is enough
 * for a query, whose result is withheld if the session ends. That of a mutation is not, so each of its reads verifies
 * the actor.
 */
export function actorOfReads (context: GraphQLContext): Promise<Actor | null> {
  if (context.isQuery === false) return verify(context)
  context.reader ??= verify(context)
  return context.reader
}

async function verify (context: GraphQLContext): Promise<Actor | null> {
  const actor = await context.actor()
  if (actor) context.verified = actor
  return actor
}

/** Returns whether the reader of an operation may read the private uploads of a user. */
export async function mayReadPrivate (context: GraphQLContext, ownerId: string): Promise<boolean> {
  const { policy } = context.usher.usherAccess
  const action = 'uploads:read-private'
  return policy.isOpen(action) || policy.allows(await actorOfReads(context), action, ownerId)
}

/** Returns the reader of users, or null if all readers see the same of them. */
export async function readerOfUsers (context: GraphQLContext): Promise<Actor | null> {
  return context.usher.usherAccess.policy.isOpen('users:read-email') ? null : actorOfReads(context)
}

const accountMember = (name: AccountMember) =>
  async (user: UserRow, _: unknown, context: GraphQLContext): Promise<UserRow[AccountMember] | null> => {
    const reader = await actorOfReads(context)
    return context.usher.usherAccess.policy.allows(reader, 'users:read-email', user.id) ? user[name] : null
  }

/** Resolves the entity tag of a user, which depends on what the reader may see. */
export function etagOfUser (user: UserRow, _: unknown, context: GraphQLContext): string | Promise<string> {
  const { policy } = context.usher.usherAccess
  if (policy.isOpen('users:read-email')) return policy.viewOf(null, user.id).tagOf(user)
  return actorOfReads(context).then((reader) => policy.viewOf(reader, user.id).tagOf(user))
}

// A field of the host. Null without a value, and for readers who may not see it.
const hostField = ({ name, ...field }: UserField) =>
  async (user: UserRow, _: unknown, context: GraphQLContext): Promise<unknown> => {
    const reader = readerFor(await actorOfReads(context), 'users:read-email')
    const [visible] = readableFields([{ name, ...field }], reader, user.id)
    return visible ? user[name as keyof UserRow] : null
  }

/**
 * Returns the resolvers of the fields that some readers may not see. There are none if anyone may, because resolvers
 * cost time.
 */
export function hidingResolvers ({ usherOptions: { policy, userFields } }: FastifyInstance) {
  const hidden = userFields.filter(({ read }) => read !== 'anyone')
  return {
    ...policy['users:read-email'] !== audiences.anyone &&
      Object.fromEntries(accountMembers.map((name) => [name, accountMember(name)])),
    ...Object.fromEntries(hidden.map((field) => [field.name, hostField(field)])),
  }
}

/** Returns the resolver of the scalar that the fields of the host need, if they need one. */
export function fieldScalars ({ usherOptions: { userFields } }: FastifyInstance) {
  return hasJson(userFields) ? { JSON: new GraphQLScalarType({ name: 'JSON' }) } : {}
}

/**
 * Counts the bytes that users add to the response, like `countRows`. Only what the reader may see counts, or the limit
 * would reveal how long the rest is. Returns nothing to wait for if the host has no fields.
 */
export function countUsers (
  context: GraphQLContext, info: GraphQLResolveInfo, users: readonly UserRow[]
): Promise<void> | undefined {
  const { usherOptions: { userFields } } = context.usher
  return userFields.length === 0 ? void countRows(context, info, users) : countVisible(context, info, users)
}

async function countVisible (
  context: GraphQLContext, info: GraphQLResolveInfo, users: readonly UserRow[]
): Promise<void> {
  const { policy } = context.usher.usherAccess
  const reader = await readerOfUsers(context)
  countRows(context, info, users.map((user) => policy.viewOf(reader, user.id).show(user)))
}

/** Returns the actions on which a document with these fields depends. Every subscription delivers posts. */
export function actionsOf (
  { usherOptions: { userFields, hostGraphql } }: FastifyInstance, fields: ReadonlySet<string>
): ReadAction[] {
  // Posts have an entity tag as well, which is the same for all readers. Users may also be behind a field of the host.
  const mayBeOfUser = fields.has('author') || hostGraphql !== undefined
  const ofAccount = [
    ...accountMembers, ...mayBeOfUser ? ['etag'] : [], ...userFields.map(({ name }) => name),
  ]
  return [
    'posts:read',
    ...fields.has('author') ? ['users:read' as const] : [],
    ...fields.has('uploads') ? ['uploads:list' as const, 'uploads:read-private' as const] : [],
    ...ofAccount.some((name) => fields.has(name)) ? ['users:read-email' as const] : [],
  ]
}

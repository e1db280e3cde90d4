import type { FastifyInstance } from 'fastify'
import { GraphQLScalarType, type GraphQLResolveInfo } from 'graphql'
import type { UserRow } from '../../../db/tables/index.ts'
import { audiences, type Actor, type ReadAction } from '../../../schema/options/policy.ts'
import type { Caller } from '../../../plugins/access/caller.ts'
import { readerFor } from '../../../plugins/access/policy.ts'
import { clientInfoOf } from '../../../plugins/http/client-info.ts'
import { hasJson } from '../../../schema/graphql/sdl.ts'
import { accountMembers, type AccountMember } from '../../../schema/users/members.ts'
import { graphqlNameOf } from '../../../schema/options/roles.ts'
import { readableFields, type UserField } from '../../../schema/users/user-fields.ts'
import { ReadClient, type GraphQLContext } from '../context.ts'
import { countRows } from '../limits/result-size.ts'

/**
 * Returns the caller of the reads of an operation that depend on these actions (contract 11.1). If anyone may perform
 * them, nobody is identified, and there is nothing to wait for.
 */
export function readerOf (context: GraphQLContext, ...actions: readonly ReadAction[]): Caller | Promise<Caller> {
  if (!context.usher.usherAccess.policy.isOpen(...actions)) return identifiedReaderOf(context)
  context.anybody ??= createReader(context, null)
  return context.anybody
}

/**
 * Returns the caller of reads with the actor of the operation. Over a socket, finding the actor verifies the token
 * again. Once is enough for a query, whose result is withheld if the session ends. That of a mutation is not, so each
 * of its reads verifies the actor.
 */
export function identifiedReaderOf (context: GraphQLContext): Promise<Caller> {
  if (context.isQuery === false) return identify(context)
  context.reader ??= identify(context)
  return context.reader
}

async function identify (context: GraphQLContext): Promise<Caller> {
  const actor = await context.actor()
  if (actor) context.verified = actor
  // One caller has one error for all fields that it may not read, and one entry in the account log.
  if (context.identified?.actor !== actor) context.identified = createReader(context, actor)
  return context.identified
}

function createReader (context: GraphQLContext, actor: Actor | null): Caller {
  const { usher: { usherAccess, usherAudit: audit, log }, request } = context
  return usherAccess.createCaller({
    actor,
    client: new ReadClient(context),
    via: 'graphql',
    log: request?.log ?? log,
    // The account log has no entries of reads by nobody.
    ...actor && request ? clientInfoOf(request) : { address: '', userAgent: '' },
    // The error handler of REST routes records rejections, but errors of resolvers do not reach it.
    onDenied: actor && request ? (caller) => audit.addRejection(caller, 403) : undefined,
  })
}

const accountMember = (name: AccountMember) =>
  async (user: UserRow, _: unknown, context: GraphQLContext): Promise<UserRow[AccountMember] | null> => {
    const reader = await readerOf(context, 'users:read-email')
    return reader.allows('users:read-email', { ownerId: user.id }) ? user[name] : null
  }

/** Resolves the entity tag of a user, which depends on what the reader may see. */
export function etagOfUser (user: UserRow, _: unknown, context: GraphQLContext): string | Promise<string> {
  const reader = readerOf(context, 'users:read-email')
  const tagFor = (reader: Caller) => reader.viewOf(user.id).tagOf(user)
  return reader instanceof Promise ? reader.then(tagFor) : tagFor(reader)
}

// A field of the host. Null without a value, and for readers who may not see it.
const hostField = ({ name, ...field }: UserField) =>
  async (user: UserRow, _: unknown, context: GraphQLContext): Promise<unknown> => {
    const reader = readerFor((await readerOf(context, 'users:read-email')).actor, 'users:read-email')
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

/**
 * Returns the resolver of roles whose names are others in GraphQL. There is none without such roles, because resolvers
 * cost time.
 */
export function roleResolver ({ usherOptions: { roles } }: FastifyInstance) {
  const isSame = [...roles.keys()].every((name) => graphqlNameOf(name) === name)
  return isSame ? {} : { role: ({ role }: UserRow) => graphqlNameOf(role) }
}

/** Returns the resolver of the scalar that the fields of the host need, if they need one. */
export function fieldScalars ({ usherOptions: { userFields, organizations } }: FastifyInstance) {
  return hasJson([...userFields, ...organizations?.fields ?? []]) ? { JSON: new GraphQLScalarType({ name: 'JSON' }) } : {}
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
  const reader = await readerOf(context, 'users:read-email')
  countRows(context, info, users.map((user) => reader.viewOf(user.id).show(user)))
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

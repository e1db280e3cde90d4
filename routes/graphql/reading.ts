import type { FastifyInstance } from 'fastify'
import type { UserRow } from '../../db/tables.ts'
import { Forbidden } from '../../schema/errors.ts'
import { Unauthenticated } from '../../schema/auth.ts'
import type { Actor, ReadAction } from '../../schema/policy.ts'
import type { GraphQLContext } from './context.ts'

/**
 * Throws `Unauthenticated` or `Forbidden` if the reader of an operation may not read something (contract 11.1). Returns nothing to wait
 * for if anyone may, since a list calls this for each of its rows.
 */
export function authorizeRead (context: GraphQLContext, action: ReadAction, ownerId?: string): Promise<void> | undefined {
  return context.usher.usherVisibility.isOpen(action) ? undefined : authorize(context, action, ownerId)
}

async function authorize (context: GraphQLContext, action: ReadAction, ownerId: string | undefined): Promise<void> {
  const { usher: { usherVisibility: visibility, usherAudit: audit, usherAuth: auth }, request } = context
  const reader = await readerOf(context)
  if (visibility.allows(reader, action, ownerId)) return
  if (!reader) throw new Unauthenticated()
  if (request) audit.addRejection(auth.callerOf(request, { actor: reader }), 403)
  throw new Forbidden()
}

// Over a socket, finding the actor verifies the token again. Once is enough for an operation.
function readerOf (context: GraphQLContext): Promise<Actor | null> {
  context.reader ??= context.actor()
  return context.reader
}

const accountMember = <Name extends 'email' | 'emailVerified' | 'disabled'> (name: Name) =>
  async (user: UserRow, _: unknown, context: GraphQLContext): Promise<UserRow[Name] | null> => {
    const reader = await readerOf(context)
    return context.usher.usherVisibility.allows(reader, 'users:read-email', user.id) ? user[name] : null
  }

/** Returns the resolvers of the fields that some readers may not see. There are none if anyone may, because resolvers cost time. */
export function hidingResolvers (usher: FastifyInstance) {
  if (usher.usherVisibility.isOpen('users:read-email')) return {}
  return { email: accountMember('email'), emailVerified: accountMember('emailVerified'), disabled: accountMember('disabled') }
}

/** Returns the actions on which a document with these fields depends. Every subscription delivers posts. */
export function actionsOf (fields: ReadonlySet<string>): ReadAction[] {
  return [
    'posts:read',
    ...fields.has('author') ? ['users:read' as const] : [],
    ...['email', 'emailVerified', 'disabled'].some((name) => fields.has(name)) ? ['users:read-email' as const] : [],
  ]
}

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { UserRow } from '../../db/tables/index.ts'
import { Unauthenticated } from '../../schema/auth/login.ts'
import { Forbidden } from '../../schema/http/errors.ts'
import { audiences, type Actor, type ReadAction, type ReadRule } from '../../schema/options/policy.ts'
import { createEntityTag } from '../../schema/http/entity-tag.ts'
import { areOpen, readableFields } from '../../schema/users/user-fields.ts'
import type { Core } from '../core.ts'
import { addVary } from '../http/vary.ts'
import type { Actors } from './actors.ts'
import type { Identity } from './identity.ts'

/** A user as a reader sees it: without the members of the account if the reader may not see them. */
export type VisibleUser = Omit<UserRow, AccountMember> & Partial<Pick<UserRow, AccountMember>>
type AccountMember = 'email' | 'emailVerified' | 'disabled'

// The representation of a user. Another number gives all users new entity tags, for a release that represents the same rows differently.
const REPRESENTATION = 'user 1 application/json'

interface Dependencies extends Pick<Core, 'options'> {
  actors: Actors
  identity: Identity
}

export type Visibility = ReturnType<typeof createVisibility>

/** Decides who sees what (contract 11.1): the rules of the policy for reads. */
export function createVisibility ({ options: { policy, userFields }, actors, identity }: Dependencies) {
  const fieldsAreOpen = areOpen(userFields)
  // By what a reader sees of a user. There are few variants.
  const taggers = new Map<string, (version: string) => string>()

  /** Returns whether anyone may do all of these. Then readers need not be identified, and all get the same responses. */
  const isOpen = (...actions: ReadAction[]): boolean => actions.every((action) => isFor(action, audiences.anyone))

  // Everything that shows a user depends on `users:read-email`, and therefore also on who may see the fields of the host.
  const isFor = (action: ReadAction, audience: ReadRule): boolean =>
    policy[action] === audience && (action !== 'users:read-email' || fieldsAreOpen)

  const allows = (reader: Actor | null, action: ReadAction, ownerId?: string): boolean => policy[action](reader, ownerId)

  /** Throws `Unauthenticated` or `Forbidden` if a reader may not read something. */
  function authorize (reader: Actor | null, action: ReadAction, ownerId?: string): void {
    if (!allows(reader, action, ownerId)) throw reader ? new Forbidden() : new Unauthenticated()
  }

  // Sets `request.actor` to the reader, or to null without a token.
  async function identify (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    // The response depends on the reader, so caches must not use it for others.
    reply.header('cache-control', 'private, no-cache')
    addVary(reply, 'Authorization')
    actors.set(request, null)
    if (request.headers.authorization !== undefined) await identity.authenticate(request, reply)
  }

  const identifies = (...actions: ReadAction[]) => isOpen(...actions) ? [] : [identify]

  return {
    isOpen,
    allows,
    authorize,

    /**
     * Returns `onRequest` hooks that identify the reader, who may be nobody. If anyone may do all of `actions`, there are none: tokens are
     * ignored, and reads cost no more than without a policy.
     */
    identifies,

    /**
     * Returns `onRequest` hooks that identify the reader and check the policy.
     * @param also further actions on which the response depends
     * @param ownerOf returns the id of the user whose resource is read
     */
    reads: (action: ReadAction, also: readonly ReadAction[], ownerOf?: (request: FastifyRequest) => string) => [
      ...identifies(action, ...also),
      ...isOpen(action) ? [] : [async (request: FastifyRequest) => authorize(actors.in(request), action, ownerOf?.(request))],
    ],

    /** Returns the member `security` of the description of such a route in the reference, unless it is public. */
    securityOf (action: ReadAction, also: readonly ReadAction[] = []) {
      if (isOpen(action, ...also)) return {}
      const bearer = { bearer: [] }
      return { security: allows(null, action) ? [{}, bearer] : [bearer] }
    },

    /** Returns a user as a reader sees it. */
    show (user: UserRow, reader: Actor | null): VisibleUser {
      const shown = userFields.length === 0 ? user : withFields(user, reader)
      if (allows(reader, 'users:read-email', user.id)) return shown
      const { email, emailVerified, disabled, ...visible } = shown
      return visible
    },

    /**
     * Returns the entity tag of a user as a reader sees it (contract 10.1). All mounts with the same fields have the same tags. Readers who
     * do not see the same of a user have different ones.
     */
    tagOf ({ id, rowVersion }: Pick<UserRow, 'id' | 'rowVersion'>, reader: Actor | null): string {
      const seesAccount = allows(reader, 'users:read-email', id)
      const fields = userFields.length === 0 ? userFields : readableFields(userFields, reader, id)
      const key = `${seesAccount} ${fields.map(({ name }) => name)}`
      let tag = taggers.get(key)
      if (!tag) {
        const variant = [REPRESENTATION, seesAccount, fields.map(({ name, type, default: preset }) => [name, type, preset])]
        taggers.set(key, tag = createEntityTag(JSON.stringify(variant)))
      }
      return tag(rowVersion)
    },

    /** Returns a user as the user sees the own record. */
    showOwn: (user: UserRow): UserRow => userFields.length === 0 ? user : withFields(user, user),

    /** Returns a user with every field that has a value. */
    showAll: (user: UserRow): UserRow => userFields.length === 0 ? user : withFields(user, { id: '', role: 'admin' }),

    /**
     * Returns a text that is the same for all readers who may perform these actions on the same records. What is rendered for one
     * of them may be sent to the others.
     */
    audienceOf (reader: Actor | null, actions: readonly ReadAction[]): string {
      if (isOpen(...actions)) return ''
      if (!reader) return 'nobody'
      const onlyMembers = actions.every((action) => isFor(action, audiences.members) || isOpen(action))
      // A rule may depend on claims, and tokens of the same user may have different ones.
      return onlyMembers ? 'member' : `${reader.id} ${reader.role} ${JSON.stringify(reader.claims)}`
    },
  }

  // Returns a user with only those fields that the reader may see and that have a value.
  function withFields (user: UserRow, reader: Pick<Actor, 'id' | 'role'> | null): UserRow {
    const shown: Record<string, unknown> = { ...user }
    for (const { name } of userFields) delete shown[name]
    for (const { name } of readableFields(userFields, reader, user.id)) {
      const value: unknown = user[name as keyof UserRow]
      if (value !== null && value !== undefined) shown[name] = value
    }
    return shown as unknown as UserRow
  }
}

import {
  deleteApiKey, getApiKey, insertApiKey, listApiKeys, type ApiKeyRow,
} from '../../../db/sign-in/api-keys.ts'
import { holdMembership } from '../../../db/access/memberships.ts'
import type { Database } from '../../../db/tables/index.ts'
import { revokeUploadLinksOfKey } from '../../../db/uploads/upload-links.ts'
import { lockUser } from '../../../db/users/users.ts'
import { NotAServiceUser, type CreateApiKey } from '../../../schema/sign-in/api-keys.ts'
import { InvalidToken } from '../../../schema/sign-in/login.ts'
import { MULTI_FACTOR } from '../../../schema/access/sessions.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import { sessionActions } from '../../../schema/options/policy.ts'
import { UserDisabled, UserNotFound } from '../../../schema/users/users.ts'
import type { Audit } from '../../audit/index.ts'
import type { Core } from '../../core.ts'
import type { UserRecords } from '../../users/user-records.ts'
import { requireMembership } from '../../access/memberships.ts'
import type { Caller } from '../../access/caller.ts'
import { hashSecret } from '../../access/secrets.ts'
import type { Credentials } from '../credentials.ts'
import type { Sessions } from '../../access/sessions.ts'
import type { StepUp } from '../step-up.ts'
import { createApiKey } from './format.ts'

interface Dependencies extends Core {
  audit: Audit
  credentials: Credentials
  sessions: Pick<Sessions, 'markEnded'>
  stepUp: StepUp
  users: UserRecords
}

export type ApiKeys = ReturnType<typeof createApiKeys>

/** Creates, lists and deletes the API keys of users (contract 17.1). */
export function createApiKeys (
  { database: { db, newId, clock }, audit, credentials, sessions, stepUp, users, options }: Dependencies
) {
  // Returns the actions, each once. Throws `InvalidInput` for what is no action, or one that no key can have.
  function checkActions (actions: readonly string[]): string[] {
    const problems = [...new Set(actions)].flatMap((action) => {
      if (!Object.hasOwn(options.policy, action)) return [`actions has ${JSON.stringify(action)}, which is no action`]
      return sessionActions.has(action) ? [`actions has ${action}, which needs a session`] : []
    })
    if (problems.length > 0) throw new InvalidInput(...problems.slice(0, 10))
    return [...new Set(actions)]
  }

  // It does not end until the transaction ends, and the key ends with it (contract 19.3).
  async function membershipOf (
    trx: Database, userId: string, organizationId: string | undefined
  ): Promise<string | null> {
    if (organizationId === undefined) return null
    const organization = await holdMembership(trx, { userId, organizationId })
    return requireMembership(options, organization ?? null, organizationId)!.membershipId
  }

  function checkExpiry (given: string): Date {
    const expiresAt = new Date(given)
    if (!(expiresAt.getTime() > clock.now())) throw new InvalidInput('expiresAt must be in the future')
    return expiresAt
  }

  return {
    /**
     * Creates an API key of a user, who gets a mail. Returns it with its secret, which nothing else returns. Throws
     * `Unauthenticated`, `Forbidden`, `SessionRequired`, `StepUpRequired`, `InvalidInput`, `UserNotFound`,
     * `UserDisabled`, `NotAServiceUser` if it is that of another person, `OrganizationNotFound` if the user is no
     * member of its organisation, `TooManyApiKeys`, `InvalidToken`.
     * @param given what the schema `CreateApiKey` accepts
     */
    async create (caller: Caller, userId: string, given: CreateApiKey): Promise<ApiKeyRow & { key: string }> {
      caller.authorize('api-keys:create', { ownerId: userId })
      // Also for a key of somebody else: a thief of an admin's session must not leave a key behind.
      await stepUp.require(caller)
      const { actor } = caller
      const isOwn = actor?.id === userId
      const actions = given.actions === undefined ? null : checkActions(given.actions)
      const expiresAt = given.expiresAt === undefined ? null : checkExpiry(given.expiresAt)
      const key = createApiKey()
      const created = await db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user) throw isOwn ? new InvalidToken() : new UserNotFound()
        if (user.disabled) throw isOwn ? new InvalidToken() : new UserDisabled()
        if (actor && !isOwn && user.kind !== 'service') throw new NotAServiceUser()
        caller.authorizeOver(user, 'api-keys:create')
        const row = {
          id: newId(),
          userId,
          hash: hashSecret(key),
          name: given.name,
          actions,
          multiFactor: actor?.amr.includes(MULTI_FACTOR) ?? false,
          membershipId: await membershipOf(trx, userId, given.organizationId),
          expiresAt,
        }
        await credentials.recordAdded(trx, caller, 'api-key', { userId })
        const created = await insertApiKey(trx, row)
        // Last in the transaction, because it may have waited for locks (contract 1.12).
        await caller.confirm()
        return created
      })
      return { ...created, key }
    },

    /**
     * Returns the keys of a user, newest first. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`, `InvalidToken`.
     */
    async list (caller: Caller, userId: string): Promise<ApiKeyRow[]> {
      caller.authorize('api-keys:list', { ownerId: userId })
      if (caller.actor?.id !== userId) await users.get(userId, caller.client)
      const keys = await listApiKeys(db, userId)
      await caller.confirm()
      return keys
    },

    /**
     * Returns a key of a user. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`, `ApiKeyNotFound`, `InvalidToken`.
     */
    async get (caller: Caller, userId: string, id: string): Promise<ApiKeyRow> {
      caller.authorize('api-keys:list', { ownerId: userId })
      if (caller.actor?.id !== userId) await users.get(userId, caller.client)
      const key = await getApiKey(db, userId, id)
      await caller.confirm()
      return key
    },

    /**
     * Deletes a key of a user, which every node rejects from then on. The user gets a mail. It needs no step-up,
     * because it must be quick. The links to uploads that were created with it belong to the user, and stay unless
     * `revokesLinks`. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`, `ApiKeyNotFound`,
     * `InvalidToken`.
     */
    async delete (caller: Caller, userId: string, id: string, { revokesLinks = false } = {}): Promise<void> {
      caller.authorize('api-keys:delete', { ownerId: userId })
      if (caller.actor?.id !== userId) await users.get(userId, caller.client)
      await db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user) throw caller.actor?.id === userId ? new InvalidToken() : new UserNotFound()
        caller.authorizeOver(user, 'api-keys:delete')
        await deleteApiKey(trx, userId, id)
        if (revokesLinks) await revokeUploadLinksOfKey(trx, id, audit.contextOf(caller))
        await credentials.recordRemoved(trx, caller, userId, 'api-key')
        await caller.confirm()
      })
      sessions.markEnded([id])
    },
  }
}

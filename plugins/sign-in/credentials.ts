import { adoptUnverified } from '../../db/sign-in/adopt-unverified.ts'
import { findAccount } from '../../db/mail-links/password-links.ts'
import { findSecondFactors } from '../../db/sign-in/second-factor.ts'
import { insertUndoToken } from '../../db/mail-links/undo-links.ts'
import { endedOf, repairAccount, type Repaired } from '../../db/sign-in/repairs.ts'
import { storeCredentialEvent } from '../../db/outbox/store.ts'
import { listPasskeys } from '../../db/sign-in/passkeys.ts'
import { listIdentities } from '../../db/sign-in/providers/identities.ts'
import { requireLiveSession } from '../../db/access/live-sessions.ts'
import { deleteSessionsOf } from '../../db/access/ended-sessions.ts'
import { restartLoginLimits } from '../../db/throttle/login-limits.ts'
import { clearLimits, limitKey, SECOND_FACTOR_OF_ACCOUNT } from '../../db/throttle/throttle.ts'
import { findTotp } from '../../db/sign-in/totp/totp.ts'
import type { Database } from '../../db/tables/index.ts'
import { findUsers, lockUser } from '../../db/users/users.ts'
import { networkOf } from '../../schema/http/network.ts'
import type { CredentialKind } from '../../schema/sign-in/ways.ts'
import type { UsherCredentials } from '../../schema/options/usher.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import type { Audit } from '../audit/index.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { UserRecords } from '../users/user-records.ts'
import type { Caller } from '../access/caller.ts'
import type { UndoLinks } from '../mail-links/undo-links.ts'
import type { Sessions } from '../access/sessions.ts'
import type { Throttle } from '../throttle/throttle.ts'

interface Dependencies extends Pick<Core, 'database' | 'options'> {
  audit: Audit
  hooks: HookRunner
  sessions: Pick<Sessions, 'markEnded'>
  throttle: Pick<Throttle, 'forgetRejections'>
  undoLinks: UndoLinks
  users: Pick<UserRecords, 'get'>
}

/** What a reset has removed, and the number of sessions that it has ended. */
export interface CredentialReset {
  totp: boolean
  passkeys: number
  identities: number
  endedSessions: number
}

export type Credentials = ReturnType<typeof createCredentials>

/**
 * What happens along with every change of the ways to sign in and the second factors, and what operators and
 * hosts do with them (contract 16.3, 16.4).
 */
export function createCredentials (
  { database: { db }, audit, hooks, sessions, throttle, undoLinks, users, options: { userFields } }: Dependencies
) {
  /**
   * Records that a way to sign in, a second factor or an API key is added, in the transaction that adds it and has
   * locked the user: the entry of the account log, the event, and the mail, with a link that undoes it if the user has
   * added it. Call it before the row is inserted, because that link removes what is added after it. Returns the ids of
   * the sessions that it has ended, to be marked after the commit.
   * @param details.userId whose it is, if it may be somebody else's
   * @param details.owner the user, if the caller has no token, and the session in which it happens, if there is one
   * @param details.provider the name of the provider of an identity
   * @param details.endOthersThan the only session of the user that does not end. Without it, none ends
   */
  async function recordAdded (
    trx: Database, caller: Caller, kind: CredentialKind,
    { owner, userId = owner?.userId ?? caller.getActor().id, provider, endOthersThan }: {
      owner?: { userId: string, sessionId?: string }, userId?: string, provider?: string, endOthersThan?: string,
    } = {}
  ): Promise<string[]> {
    const actorId = owner?.userId ?? caller.actor?.id ?? null
    const { email } = (await lockUser(trx, userId))!
    // A repair of the account, for which this may have waited, has ended the session. Its notification may be late, and
    // what is added must not outlive it.
    await requireLiveSession(trx, caller.token)
    const undo = actorId === userId ? undoLinks.create() : undefined
    const isUndoable = undo !== undefined && await insertUndoToken(trx, undo.hash, userId, { hasPassword: false })
    await audit.add(caller, { action: `${kind}.add`, userId, ...owner && { actorId: owner.userId, ...owner } }, trx)
    await storeCredentialEvent(trx, 'credential.added', { userId, actorId, kind })
    const link = isUndoable ? undo : undefined
    await undoLinks.notifyAdded(trx, kind, { email, userId, language: caller.languageOf(userId) }, link, provider)
    return endOthersThan === undefined ? [] : deleteSessionsOf(trx, userId, userId, endOthersThan)
  }

  /**
   * Records that a way to sign in, a second factor or an API key of a user was removed, in the transaction that removes
   * it: the entry of the account log, the event, and the mail.
   */
  async function recordRemoved (trx: Database, caller: Caller, userId: string, kind: CredentialKind): Promise<void> {
    const user = await lockUser(trx, userId)
    if (!user) return
    await audit.add(caller, { action: `${kind}.remove`, userId }, trx)
    await storeCredentialEvent(trx, 'credential.removed', { userId, actorId: caller.actor?.id ?? null, kind })
    await undoLinks.notifyRemoved(trx, kind, { email: user.email, userId, language: caller.languageOf(userId) })
  }

  /**
   * Records what a repair has removed, in its transaction: the entries of the account log, and a mail for each kind.
   * The events are stored. Without `email`, there is no mail.
   * @param details.actorId the user who repairs, if the caller has no token
   */
  async function recordRepaired (
    trx: Database, caller: Caller, { removed }: Pick<Repaired, 'removed'>,
    { userId, email, actorId }: { userId: string, email?: string, actorId?: string }
  ): Promise<void> {
    for (const { kind } of removed) {
      await audit.add(caller, { action: `${kind}.remove`, userId, ...actorId !== undefined && { actorId } }, trx)
    }
    if (email === undefined) return
    const recipient = { email, userId, language: caller.languageOf(userId) }
    for (const kind of new Set(removed.map(({ kind }) => kind))) await undoLinks.notifyRemoved(trx, kind, recipient)
  }

  return {
    recordAdded,
    recordRemoved,
    recordRepaired,

    /**
     * Marks the address of a user as verified, for somebody who has just proved to read its mailbox, and removes
     * everything that was set up before if nobody had verified it: see `adoptUnverified`. Does that with the
     * entries of the account log, the events, the hook `onUserUpdate` and a mail that says so, and starts the limits of
     * failed logins anew. Call it in a transaction, before the session of the owner is stored. Throws `UserNotFound`.
     * @returns a function to call after the commit, or undefined if the address was verified already
     */
    async adoptUnverified (trx: Database, caller: Caller, userId: string): Promise<(() => void) | undefined> {
      const adoption = await adoptUnverified(trx, userId)
      if (!adoption) return undefined
      const { email, hadPassword, repaired } = adoption
      const actions = ['user.email-verify' as const, ...hadPassword ? ['password.remove' as const] : []]
      for (const action of actions) await audit.add(caller, { action, actorId: userId, userId }, trx)
      await recordRepaired(trx, caller, repaired, { userId, actorId: userId })
      if (hadPassword || repaired.removed.length > 0) {
        await undoLinks.notifyAdopted(trx, { email, userId, language: caller.languageOf(userId) })
      }
      const hook = hooks.during('onUserUpdate', caller)
      if (hook) {
        const [user] = await findUsers(trx, [userId], userFields)
        await hook(trx, user!)
      }
      await restartLoginLimits(trx, { userId, email, network: networkOf(caller.address) })
      return () => {
        sessions.markEnded(endedOf(repaired))
        throttle.forgetRejections()
      }
    },

    /**
     * Returns the ways to sign in that a user has. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`,
     * `InvalidToken`.
     */
    async list (caller: Caller, userId: string): Promise<UsherCredentials> {
      caller.authorize('second-factor:read', { ownerId: userId })
      caller.authorize('passkeys:list', { ownerId: userId })
      caller.authorize('identities:list', { ownerId: userId })
      await users.get(userId, caller.client)
      const [account, totp, { recoveryCodes }, passkeys, identities] = await Promise.all([
        findAccount(db, userId),
        findTotp(db, userId),
        findSecondFactors(db, userId),
        listPasskeys(db, userId),
        listIdentities(db, userId),
      ])
      await caller.confirm()
      const confirmedAt = totp?.confirmedAt ?? null
      const password = typeof account?.passwordHash === 'string'
      return { password, totp: confirmedAt && { confirmedAt }, recoveryCodesLeft: recoveryCodes, passkeys, identities }
    },

    /**
     * Removes the authenticator app of a user with the recovery codes, for somebody who has lost the device, and makes
     * everything void that was issued to the user (contract 11.3). Does nothing if there is nothing to remove. Throws
     * `Unauthenticated`, `Forbidden`, `UserNotFound`, `InvalidToken`.
     * @param options.passkeys whether the passkeys are removed as well
     * @param options.identities whether the identities at providers are removed as well
     */
    async resetSecondFactor (
      caller: Caller, userId: string, options: { passkeys?: boolean, identities?: boolean } = {}
    ): Promise<CredentialReset> {
      caller.authorize('second-factor:reset', { ownerId: userId })
      await users.get(userId, caller.client)
      const { ended, ...removed } = await db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user) throw new UserNotFound()
        caller.authorizeOver(user, 'second-factor:reset')
        const factors = await findSecondFactors(trx, userId)
        const linked = options.identities === true ? await listIdentities(trx, userId) : []
        const passkeys = options.passkeys === true ? factors.passkeys : 0
        if (!factors.totp && passkeys + linked.length === 0) {
          return { totp: false, passkeys: 0, identities: 0, ended: { sessions: [], removed: [] } }
        }
        const ended = await repairAccount(trx, userId, 'second-factor-reset', {
          actorId: caller.actor?.id ?? null,
          decisions: {
            ...options.passkeys === true && { passkey: 'remove' },
            ...options.identities === true && { identity: 'remove' },
          },
        })
        await recordRepaired(trx, caller, ended, { userId, email: user.email })
        await caller.confirm()
        await clearLimits(trx, [limitKey(SECOND_FACTOR_OF_ACCOUNT, [userId])])
        return { totp: factors.totp, passkeys, identities: linked.length, ended }
      })
      sessions.markEnded(endedOf(ended))
      throttle.forgetRejections()
      return { ...removed, endedSessions: ended.sessions.length }
    },
  }
}

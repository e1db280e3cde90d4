import { deleteUser } from '../../db/users/deleted-users.ts'
import { openEmailToken, verifyEmail, type Needed, type SessionOf } from '../../db/mail-links/verification-links.ts'
import { foldEmail } from '../../schema/strings/address.ts'
import { restartLoginLimits } from '../../db/throttle/login-limits.ts'
import { changePassword, findAccount, resetPassword, type Account, type PasswordChange } from '../../db/mail-links/password-links.ts'
import { insertMail } from '../../db/outbox/mails.ts'
import type { Database, UserRow } from '../../db/tables/index.ts'
import { endedOf } from '../../db/sign-in/repairs.ts'
import { listWays } from '../../db/sign-in/ways.ts'
import { getUndoTokenOwner, undoChange, type Undo } from '../../db/mail-links/undo-links.ts'
import { lockUser } from '../../db/users/users.ts'
import type { Changes } from '../../db/users/update-user.ts'
import { permits, type Match } from '../../schema/http/entity-tag.ts'
import { InvalidInput, PreconditionFailed } from '../../schema/http/errors.ts'
import { networkOf } from '../../schema/http/network.ts'
import { OwnSessionRequired } from '../../schema/mail-links/mail-token.ts'
import {
  normalizePassword, PasswordRequired, rejectPersonalWords, WrongPassword,
} from '../../schema/sign-in/passwords/passwords.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { EmailTaken } from '../../schema/users/users.ts'
import { userInputs } from '../../schema/users/user-inputs.ts'
import type { Caller } from '../access/caller.ts'
import { hashingOf } from '../sign-in/passwords/passwords.ts'
import { requireSession } from '../access/policy.ts'
import type { UndoLink } from '../mail-links/undo-links.ts'
import type { Access } from '../access/index.ts'
import type { MailLinks } from '../mail-links/index.ts'
import type { SignIn } from '../sign-in/index.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { Audit } from '../audit/index.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { UserRecords } from '../users/user-records.ts'
import type { DeletedUsers } from './deleted-users.ts'
import { authorizeChange, withoutIgnored } from './permissions.ts'
import { createDeferEmail } from './deferred-email.ts'
import { createUpdateHooks } from './update-hooks.ts'
import { createUserUpdates } from './update-user.ts'

interface Dependencies extends Core, Pick<Access, 'sessions'>, Pick<MailLinks, 'verificationLinks' | 'undoLinks'>,
  Pick<SignIn, 'credentials' | 'login' | 'passwords' | 'providers' | 'stepUp'> {
  throttle: Throttle
  audit: Audit
  hooks: HookRunner
  users: UserRecords
  deletedUsers: DeletedUsers
}

/**
 * The changes of accounts that end sessions. Each is one function, which owns the transaction, the entry of the account
 * log, the revocation and the mail, so that no route can forget one of them.
 */
export function createAccounts (dependencies: Dependencies) {
  const {
    database: { db }, audit, credentials, hooks, login, passwords, providers, sessions, undoLinks,
    deletedUsers, users, stepUp, throttle, options, options: { userFields },
  } = dependencies
  const { patch } = userInputs(options)
  const updates = createUpdateHooks(dependencies)
  const deferEmail = createDeferEmail(dependencies)
  const updateUser = createUserUpdates(dependencies)

  async function isOtherMailbox (id: string, email: string, caller: Caller): Promise<boolean> {
    return foldEmail((await users.get(id, caller.client)).email) !== foldEmail(email)
  }

  // Returns what notifies a user who gets another role than `user` or is enabled again: whatever can log in then has
  // more to gain.
  async function prepareAdmission (caller: Caller, id: string, { role, disabled }: Changes) {
    const isGranted = role !== undefined && role !== null && role !== 'user'
    if (!isGranted && disabled !== false) return undefined
    const former = await users.get(id, caller.client)
    const mail = isGranted && former.role !== role
      ? role === 'admin' ? 'account-promoted' as const : 'role-granted' as const
      : disabled === false && former.disabled ? 'account-enabled' as const : undefined
    if (!mail) return undefined
    return async (trx: Database, { id: userId, email, role }: UserRow): Promise<void> => {
      const recipient = { email, userId, role, language: caller.languageOf(userId) }
      await undoLinks.notifyAdmitted(trx, mail, recipient, await listWays(trx, userId), providerNameOf)
    }
  }

  // A provider that the options no longer have has its id only.
  const providerNameOf = (id: string): string => providers.list().find((provider) => provider.id === id)?.name ?? id

  // Returns the result of a change without members.
  async function getUnchanged (id: string, caller: Caller, match: Match): Promise<UserRow> {
    const user = await users.get(id, caller.client)
    await caller.confirm()
    if (!permits(match, user.rowVersion)) throw new PreconditionFailed()
    return user
  }

  const notifyPasswordChanged = (
    trx: Database, caller: Caller, userId: string, { email, isUndoable }: PasswordChange, undo: UndoLink | undefined
  ): Promise<void> => {
    const language = caller.languageOf(userId)
    return undoLinks.notifyPasswordChanged(trx, { email, userId, language }, isUndoable ? undo : undefined)
  }

  async function notifyUndone (
    trx: Database, caller: Caller, userId: string, { replaced, email, passwordChanged, removed }: Undo
  ): Promise<void> {
    const language = caller.languageOf(userId)
    await credentials.recordRepaired(trx, caller, { removed }, { userId, email, actorId: userId })
    if (foldEmail(replaced) === foldEmail(email)) {
      if (passwordChanged || removed.length === 0) {
        await undoLinks.notifyPasswordChanged(trx, { email, userId, language })
      }
      return
    }
    const mail = undoLinks.emailChanged(language)
    if (mail) await insertMail(trx, mail, replaced, userId)
  }

  // Changes a user as the caller may.
  async function change (
    caller: Caller, id: string, given: Changes, match: Match, defersEmail: boolean
  ): Promise<UserRow> {
    if (!patch.isIn(given)) return getUnchanged(id, caller, match)
    if (caller.hasRoleOfHost) caller.authorizeOver(await users.get(id, caller.client), 'users:replace')
    const wanted = hooks.has('beforeUserUpdate') ? await updates.change(caller, id, given) : given
    if (!patch.isIn(wanted)) return getUnchanged(id, caller, match)
    const isOwn = caller.actor?.id === id.toLowerCase()
    // Whoever has the address has the account. A key that may not see the address does not learn whether it has
    // guessed it.
    const isKey = caller.actor?.keyId != null
    if (isOwn && isKey && wanted.email !== undefined && !caller.allows('users:read-email', { ownerId: caller.actor?.id })) {
      requireSession(caller.getActor())
    }
    // Also if the address takes effect later: the link goes to whoever has asked for it.
    if (isOwn && wanted.email !== undefined) {
      await stepUp.requireForAddress(caller, () => isOtherMailbox(id, wanted.email!, caller))
    }
    const { changes, sendLink } = await deferEmail(caller, id, wanted, defersEmail && isOwn)
    const hook = hooks.during('onUserUpdate', caller)
    const notifyAdmitted = await prepareAdmission(caller, id, changes)
    const inTransaction = (hook ?? sendLink ?? notifyAdmitted) && (async (trx: Database, user: UserRow) => {
      await hook?.(trx, user)
      await sendLink?.(trx)
      await notifyAdmitted?.(trx, user)
    })
    const authorize = caller.hasRoleOfHost
      ? (user: Pick<UserRow, 'id' | 'role'>) => caller.authorizeOver(user, 'users:replace')
      : undefined
    return updateUser(caller, { id: id.toLowerCase(), changes, match, authorize, inTransaction })
  }

  return {
    /**
     * Changes a user. Giving the user another role, or disabling the user, ends the user's sessions. If the
     * address changes, the former one gets a mail, with a link that restores it if it is the user's own change. If the
     * actor may not see the addresses of others, the address changes when a link that is sent to it is used. Without a
     * member to change, not even the time of the last change is set. Throws `Unauthenticated`, `Forbidden`,
     * `UserNotFound`, `EmailTaken`, `LastAdmin`, `PreconditionFailed`, `InvalidToken`, `NoMailer`.
     * @param given what the schema `PatchUser` accepts, of what `withoutIgnored` has returned
     * @param match the versions that the user may have
     * @param options `defersEmail`: whether a new address of one's own takes effect by a link that is sent to it
     */
    async update (
      caller: Caller, id: string, given: Changes, match?: Match, { defersEmail = false } = {}
    ): Promise<UserRow> {
      authorizeChange(caller, id, given)
      return change(caller, id, given, match, defersEmail)
    },

    /**
     * Does the same with a body that was not read yet: it authorizes it, and validates it without the members that the
     * caller may not write. Throws what `update` throws, and `InvalidInput`.
     */
    async readAndUpdate (caller: Caller, id: string, given: unknown, match?: Match): Promise<UserRow> {
      authorizeChange(caller, id, given)
      return change(caller, id, patch.parse(withoutIgnored(userFields, caller, given, id)), match, false)
    },

    /**
     * Deletes a user with all posts and uploads, and ends the user's sessions. Users who delete themselves must have
     * been authenticated recently, and get a mail. Throws `Unauthenticated`, `Forbidden`, `StepUpRequired`,
     * `SessionRequired`, `UserNotFound`, `LastAdmin`, `UserInUse`, `PreconditionFailed`, `InvalidToken`.
     * @param match the versions that the user may have
     */
    async delete (caller: Caller, id: string, match?: Match): Promise<void> {
      caller.authorize('users:delete', { ownerId: id.toLowerCase() })
      if (caller.hasRoleOfHost) caller.authorizeOver(await users.get(id, caller.client), 'users:delete')
      const isOwn = caller.actor?.id === id.toLowerCase()
      if (isOwn) await stepUp.require(caller)
      if (hooks.has('beforeUserDelete')) {
        await hooks.check('beforeUserDelete', await users.get(id, caller.client), caller)
      }
      const runHook = updates.beforeDelete(caller, id)
      const beforeDelete = (isOwn || runHook || caller.hasRoleOfHost) && (async (trx: Database) => {
        caller.authorizeOver((await lockUser(trx, id))!, 'users:delete')
        // Before, because the limit of mails of an address depends on whether its user has verified it.
        if (isOwn) {
          const { email } = (await lockUser(trx, id))!
          await undoLinks.notifyDeleted(trx, { email, language: caller.languageOf(id) })
        }
        await runHook?.(trx)
      })
      const entry = audit.entry(caller, { action: 'user.delete', userId: id })
      const ended = await deleteUser(db, id, entry, caller, { beforeDelete: beforeDelete || undefined, match })
      sessions.markEnded(ended)
      await deletedUsers.purge()
    },

    /**
     * Changes the actor's own password from the one that was checked, ends the actor's other sessions, and notifies the
     * actor by mail. Throws `WrongPassword` if another request has changed the password meanwhile, and `InvalidToken`.
     *
     * @param user as it was when the current password was checked
     * @param to the hash of the new password
     */
    async changePassword (
      caller: Caller, { currentPassword, password }: { currentPassword: string, password: string }
    ): Promise<void> {
      caller.authorize('passwords:change')
      const { id: userId, sessionId } = caller.getSession()
      const user = await findAccount(db, userId)
      // The user was deleted after the token was verified.
      if (!user) throw new InvalidToken()
      if (password === normalizePassword(currentPassword)) {
        throw new InvalidInput('password must differ from the current one')
      }
      rejectPersonalWords(password, user)
      await stepUp.requireWithSecondFactor(caller)
      const logFailure = async () => {
        await caller.confirm()
        await audit.add(caller, { action: 'password.change-failed' })
      }
      const from = await login.checkOwnPassword(caller, user, currentPassword, logFailure)
      const to = await passwords.hashChosen(password, hashingOf(caller))
      const undo = undoLinks.create()
      const changed = await db.transaction().execute(async (trx) => {
        const changed = await changePassword(trx, { userId, from, to, sessionId, undo: undo?.hash })
        await audit.add(caller, { action: 'password.change' }, trx)
        await notifyPasswordChanged(trx, caller, userId, changed, undo)
        await caller.confirm()
        return changed
      }).catch(async (error) => {
        // Somebody else has changed it meanwhile.
        if (error instanceof WrongPassword) await logFailure()
        throw error
      })
      sessions.markEnded(changed.ended)
    },

    /**
     * Sets a password with the hash of a token from a mail, ends all sessions of the user, removes the ways to sign in
     * that were added recently, and notifies the user by mail. Throws `InvalidInput` if the token has been used or has
     * expired.
     * @param keep the ids of ways to sign in that stay
     */
    async resetPassword (
      caller: Caller, user: Account,
      { hash, passwordHash, keep }: { hash: Uint8Array, passwordHash: string, keep: readonly string[] }
    ): Promise<void> {
      const undo = undoLinks.create()
      // It also verifies the address, so it is a change of the user.
      const inTransaction = updates.during(caller)
      // The token permits it, whatever actor the request has.
      const { id: userId } = user
      const changed = await db.transaction().execute(async (trx) => {
        const changed = await resetPassword(trx, { hash, userId, passwordHash, undo: undo?.hash, keep })
        const { email } = changed
        await audit.add(caller, { action: 'password.reset', actorId: userId }, trx)
        await notifyPasswordChanged(trx, caller, userId, changed, undo)
        await credentials.recordRepaired(trx, caller, changed, { userId, email, actorId: userId })
        await inTransaction?.(trx, userId)
        await restartLoginLimits(trx, { userId, email, network: networkOf(caller.address) })
        return changed
      })
      sessions.markEnded(changed.ended)
      throttle.forgetRejections()
    },

    /**
     * Returns what must be added to the token of a link that verifies an address. Throws `InvalidInput` if it has been
     * used or has expired.
     * @param session that of the client, if it has one
     */
    whatVerificationNeeds: async (hash: Uint8Array, session?: SessionOf): Promise<Needed> =>
      (await openEmailToken(db, hash, session)).needed,

    /**
     * Marks a user's address as verified, with the hash of a token from a mail, or gives the user the new address to
     * which the mail was sent. In a session of the user that is all. Elsewhere nobody knows who has prepared the
     * account: an address that is proved for the first time needs a new password, and everything else that lets
     * somebody in is removed; an account that has an owner changes its address in a session only. Throws `InvalidInput`
     * if the token has been used or has expired, or if the address was changed since, `PasswordRequired`,
     * `OwnSessionRequired`, and `EmailTaken`.
     */
    async verifyEmail (
      caller: Caller, hash: Uint8Array,
      { session, password }: { session: SessionOf | undefined, password: string | undefined }
    ): Promise<void> {
      const { userId, name, email, needed } = await openEmailToken(db, hash, session)
      if (needed === 'session') throw new OwnSessionRequired()
      if (needed === 'password' && password === undefined) throw new PasswordRequired()
      if (hooks.has('beforeUserUpdate')) await updates.checkEmail(caller, userId, email)
      // After the token was found to be valid, and before it is used up.
      if (needed === 'password') rejectPersonalWords(password!, { name, email })
      const passwordHash = needed === 'password'
        ? await passwords.hashChosen(password!, { ...hashingOf(caller), isKnown: true })
        : undefined
      const { undo, mails } = undoLinks.forEmailChange(true, caller.languageOf(userId))
      const inTransaction = updates.during(caller)
      const repaired = await db.transaction().execute(async (trx) => {
        const verified = await verifyEmail(trx, { hash, userId, session, passwordHash, undo })
        const actions = [
          ...verified.changed ? ['user.email-change' as const] : [], 'user.email-verify' as const,
          ...verified.repaired ? ['password.reset' as const] : [],
        ]
        for (const action of actions) await audit.add(caller, { action, actorId: userId, userId }, trx)
        const mail = verified.isUndoable ? mails?.linked : mails?.plain
        if (mail && verified.changed) await insertMail(trx, mail, verified.former, userId)
        if (verified.repaired) {
          await undoLinks.notifyPasswordChanged(trx, { email, userId, language: caller.languageOf(userId) })
          await credentials.recordRepaired(trx, caller, verified.repaired, { userId, email, actorId: userId })
          await restartLoginLimits(trx, { userId, email, network: networkOf(caller.address) })
        }
        await inTransaction?.(trx, userId)
        return verified.repaired
      })
      if (!repaired) return
      sessions.markEnded(endedOf(repaired))
      throttle.forgetRejections()
    },

    /**
     * Undoes a change of the address, the password or the ways to sign in, with the hash of a token from a mail, and
     * ends all sessions of the user. The address that is replaced gets a mail: a mailbox that somebody else reads by
     * now could otherwise take the account unnoticed. Throws `InvalidInput` if the token has been used or has expired.
     * Throws `EmailTaken` if another user has the address by now: the password is restored and the sessions end
     * nevertheless, and the token can be used again.
     */
    async undo (caller: Caller, hash: Uint8Array): Promise<void> {
      const userId = await getUndoTokenOwner(db, hash)
      const inTransaction = updates.during(caller)
      const attempt = () => db.transaction().execute(async (trx) => {
        const undone = await undoChange(trx, { hash, userId })
        await audit.add(caller, { action: 'user.undo-change', actorId: userId, userId }, trx)
        await notifyUndone(trx, caller, userId, undone)
        await inTransaction?.(trx, userId)
        await restartLoginLimits(trx, { userId, email: undone.email, network: networkOf(caller.address) })
        return undone
      })
      // Another user who was just taking the address has it now, and the second attempt finds that.
      const { ended, restored } = await attempt()
        .catch((error) => error instanceof EmailTaken ? attempt() : Promise.reject(error))
      sessions.markEnded(ended)
      throttle.forgetRejections()
      if (!restored) throw new EmailTaken()
    },
  }
}

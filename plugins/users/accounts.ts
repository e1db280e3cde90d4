import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { getEmailTokenOwner, verifyEmail } from '../../db/email-tokens.ts'
import { foldEmail } from '../../db/login-failures.ts'
import { changePassword, resetPassword, type Account, type PasswordChange } from '../../db/password-tokens.ts'
import { insertMail } from '../../db/outbox/mails.ts'
import type { Database, UserRow } from '../../db/tables.ts'
import { getUndoTokenOwner, undoChange } from '../../db/undo-tokens.ts'
import { deleteUser, updateUser, type Changes } from '../../db/user-changes.ts'
import { EmailTaken, UserNotFound } from '../../schema/user.ts'
import type { UndoLink } from '../auth/undo-links.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAccounts: ReturnType<typeof createAccounts>
  }
}

function createAccounts (app: FastifyInstance) {
  const {
    usherDatabase: { db, writeInTime }, usherAuth: { actorOf, confirm }, usherAudit: audit, usherSessions: sessions,
    usherUndoLinks: undoLinks, usherDeletedUsers: deletedUsers, usherUsers: users, usherVisibility: visibility, usherEmailLinks: emailLinks,
    usherThrottle: throttle,
  } = app

  // Last in a transaction, because it may have waited for locks (contract 1.12).
  const confirmActor = (request: FastifyRequest): Promise<void> => confirm(actorOf(request), request.socket)

  // Returns the changes that take effect at once. An actor who may not see the addresses of others must not learn whether somebody has
  // one, as a conflict would tell. So a new address of such an actor takes effect when a link that was sent to it is used.
  async function deferEmail (request: FastifyRequest, id: string, { email, ...others }: Changes): Promise<Changes> {
    if (email == null || visibility.allows(actorOf(request), 'users:read-email')) return { email, ...others }
    const { socket: client } = request
    const user = await users.read(id, client)
    if (!user) throw new UserNotFound()
    if (foldEmail(email) === foldEmail(user.email)) return { email, ...others }
    emailLinks.requireMailer()
    await throttle.verification({ userId: user.id, email, client })
    await emailLinks.send(user.id, () => confirmActor(request), { email, sessionId: actorOf(request).sessionId })
    return others
  }

  const notifyPasswordChanged = (trx: Database, { id, email }: Account, { undoableBy }: PasswordChange, undo: UndoLink | undefined): Promise<void> =>
    undoLinks.notifyPasswordChanged(trx, undoableBy ?? email, undoableBy === undefined ? undefined : undo, id)

  return {
    /**
     * Changes a user. Demoting or disabling a user ends the user's sessions. If the address changes, the former one gets a link that
     * restores it. If the actor may not see the addresses of others, the address changes when a link that is sent to it is used. Throws
     * `UserNotFound`, `EmailTaken`, `LastAdmin`, `InvalidToken`, `NoMailer`.
     */
    async update (request: FastifyRequest, id: string, given: Changes): Promise<UserRow> {
      const mayAct = () => confirmActor(request)
      const changes = await deferEmail(request, id, given)
      const undo = changes.email === undefined ? undefined : undoLinks.create()
      const context = { ...audit.contextOf(request), undo: undo?.hash ?? null, mail: undoLinks.emailChanged(undo) }
      const { user, ended } = await writeInTime((until) => updateUser(db, id, changes, { ...context, until }, mayAct), mayAct)
      sessions.markEnded(ended)
      return user
    },

    /**
     * Deletes a user with all posts and uploads, and ends the user's sessions. Throws `UserNotFound`, `LastAdmin`,
     * `InvalidToken`.
     */
    async delete (request: FastifyRequest, id: string): Promise<void> {
      const ended = await deleteUser(db, id, actorOf(request).id, async (trx) => {
        await audit.add(request, { action: 'user.delete', userId: id }, trx)
        await confirmActor(request)
      })
      sessions.markEnded(ended)
      await deletedUsers.purge()
    },

    /**
     * Changes the actor's own password from the one that was checked, ends the actor's other sessions, and notifies the actor by
     * mail. Throws `WrongPassword` if another request has changed the password meanwhile, and `InvalidToken`.
     *
     * @param user as it was when the current password was checked
     * @param to the hash of the new password
     */
    async changePassword (request: FastifyRequest, user: Account, to: string): Promise<void> {
      const { sessionId } = actorOf(request)
      const undo = undoLinks.create()
      const changed = await db.transaction().execute(async (trx) => {
        const changed = await changePassword(trx, { userId: user.id, from: user.passwordHash!, to, sessionId, undo: undo?.hash })
        await audit.add(request, { action: 'password.change' }, trx)
        await notifyPasswordChanged(trx, user, changed, undo)
        await confirmActor(request)
        return changed
      })
      sessions.markEnded(changed.ended)
    },

    /**
     * Sets a password with the hash of a token from a mail, ends all sessions of the user, and notifies the user by mail.
     * Throws `InvalidInput` if the token has been used or has expired.
     */
    async resetPassword (request: FastifyRequest, user: Account, hash: Uint8Array, passwordHash: string): Promise<void> {
      const undo = undoLinks.create()
      // The token permits it, whatever actor the request has.
      const changed = await db.transaction().execute(async (trx) => {
        const changed = await resetPassword(trx, { hash, userId: user.id, passwordHash, undo: undo?.hash })
        await audit.add(request, { action: 'password.reset', actorId: user.id }, trx)
        await notifyPasswordChanged(trx, user, changed, undo)
        return changed
      })
      sessions.markEnded(changed.ended)
    },

    /**
     * Marks a user's address as verified, with the hash of a token from a mail, or gives the user the new address to which the mail was
     * sent. Throws `InvalidInput` if the token has been used or has expired, or if the address was changed since, and `EmailTaken`.
     */
    async verifyEmail (request: FastifyRequest, hash: Uint8Array): Promise<void> {
      const userId = await getEmailTokenOwner(db, hash)
      const undo = undoLinks.create()
      const mail = undoLinks.emailChanged(undo)
      await db.transaction().execute(async (trx) => {
        const verified = await verifyEmail(trx, { hash, userId, undo: undo?.hash })
        const actions = verified.changed ? ['user.email-change', 'user.email-verify'] as const : ['user.email-verify'] as const
        for (const action of actions) await audit.add(request, { action, actorId: userId, userId }, trx)
        if (mail && verified.undoableBy !== undefined) await insertMail(trx, mail, verified.undoableBy, userId)
      })
    },

    /**
     * Undoes a change of the address or the password, with the hash of a token from a mail, and ends all sessions of the user. Throws
     * `InvalidInput` if the token has been used or has expired. Throws `EmailTaken` if another user has the address by now: the password
     * is restored and the sessions end nevertheless, and the token can be used again.
     */
    async undo (request: FastifyRequest, hash: Uint8Array): Promise<void> {
      const userId = await getUndoTokenOwner(db, hash)
      const attempt = () => db.transaction().execute(async (trx) => {
        const undone = await undoChange(trx, { hash, userId })
        await audit.add(request, { action: 'user.undo-change', actorId: userId, userId }, trx)
        return undone
      })
      // Another user who was just taking the address has it now, and the second attempt finds that.
      const { ended, restored } = await attempt().catch((error) => error instanceof EmailTaken ? attempt() : Promise.reject(error))
      sessions.markEnded(ended)
      if (!restored) throw new EmailTaken()
    },
  }
}

/**
 * The changes of accounts that end sessions. Each is one function, which owns the transaction, the entry of the account log, the
 * revocation and the mail, so that no route can forget one of them.
 */
export default fp(async function accounts (app) {
  app.decorate('usherAccounts', createAccounts(app))
}, { name: 'usher-accounts', dependencies: ['usher-visibility', 'usher-audit', 'usher-throttle', 'usher-email-links', 'usher-undo-links', 'usher-users', 'usher-deleted-users'] })

import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { getEmailTokenOwner, verifyEmail } from '../../db/email-tokens.ts'
import { changePassword, resetPassword, type Account, type PasswordChange } from '../../db/password-tokens.ts'
import type { UserRow } from '../../db/tables.ts'
import { getUndoTokenOwner, undoChange } from '../../db/undo-tokens.ts'
import { deleteUser, updateUser, type Changes } from '../../db/user-changes.ts'
import { EmailTaken } from '../../schema/user.ts'
import type { UndoLink } from '../auth/undo-links.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAccounts: ReturnType<typeof createAccounts>
  }
}

function createAccounts (app: FastifyInstance) {
  const {
    usherDatabase: { db, writeInTime }, usherAuth: { actorOf, confirm }, usherAudit: audit, usherSessions: sessions,
    usherUndoLinks: undoLinks, usherDeletedUsers: deletedUsers,
  } = app

  // Last in a transaction, because it may have waited for locks (contract 1.12).
  const confirmActor = (request: FastifyRequest): Promise<void> => confirm(actorOf(request), request.socket)

  function finishPasswordChange ({ id, email }: Account, { ended, undoableBy }: PasswordChange, undo: UndoLink | undefined): void {
    sessions.markEnded(ended)
    undoLinks.notifyPasswordChanged(undoableBy ?? email, undoableBy === undefined ? undefined : undo, id)
  }

  return {
    /**
     * Changes a user. Demoting or disabling a user ends the user's sessions. If the address changes, the former one gets a link that
     * restores it. Throws `UserNotFound`, `EmailTaken`, `LastAdmin`, `InvalidToken`.
     */
    async update (request: FastifyRequest, id: string, changes: Changes): Promise<UserRow> {
      const mayAct = () => confirmActor(request)
      const undo = changes.email === undefined ? undefined : undoLinks.create()
      const context = { ...audit.contextOf(request), undo: undo?.hash ?? null }
      const { user, ended, undoableBy } = await writeInTime((until) => updateUser(db, id, changes, { ...context, until }, mayAct), mayAct)
      sessions.markEnded(ended)
      if (undo && undoableBy !== null) undoLinks.notifyEmailChanged(undoableBy, undo, user.id)
      return user
    },

    /**
     * Deletes a user with all posts and uploads, and ends the user's sessions. Throws `UserNotFound`, `LastAdmin`,
     * `InvalidToken`.
     */
    async delete (request: FastifyRequest, id: string): Promise<void> {
      const ended = await deleteUser(db, id, async (trx) => {
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
        await confirmActor(request)
        return changed
      })
      finishPasswordChange(user, changed, undo)
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
        return changed
      })
      finishPasswordChange(user, changed, undo)
    },

    /**
     * Marks a user's address as verified, with the hash of a token from a mail. Throws `InvalidInput` if the token has been used or has
     * expired, or if the user has another address by now.
     */
    async verifyEmail (request: FastifyRequest, hash: Uint8Array): Promise<void> {
      const userId = await getEmailTokenOwner(db, hash)
      await db.transaction().execute(async (trx) => {
        await verifyEmail(trx, { hash, userId })
        await audit.add(request, { action: 'user.email-verify', actorId: userId, userId }, trx)
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
}, { name: 'usher-accounts', dependencies: ['usher-auth', 'usher-audit', 'usher-undo-links', 'usher-deleted-users'] })

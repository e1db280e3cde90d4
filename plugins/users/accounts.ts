import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { changePassword, resetPassword, type Account } from '../../db/password-tokens.ts'
import type { UserRow } from '../../db/tables.ts'
import { deleteUser, updateUser, type Changes } from '../../db/user-changes.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAccounts: ReturnType<typeof createAccounts>
  }
}

function createAccounts (app: FastifyInstance) {
  const {
    usherDatabase: { db, writeInTime }, usherAuth: { actorOf, confirm }, usherAudit: audit, usherSessions: sessions,
    usherPasswordLinks: links, usherDeletedUsers: deletedUsers,
  } = app

  // Last in a transaction, because it may have waited for locks (contract 1.12).
  const confirmActor = (request: FastifyRequest): Promise<void> => confirm(actorOf(request), request.socket)

  return {
    /**
     * Changes a user. Demoting or disabling a user ends the user's sessions. Throws `UserNotFound`, `EmailTaken`, `LastAdmin`,
     * `InvalidToken`.
     */
    async update (request: FastifyRequest, id: string, changes: Changes): Promise<UserRow> {
      const mayAct = () => confirmActor(request)
      const { user, ended } = await writeInTime((until) => updateUser(db, id, changes, audit.contextOf(request), until, mayAct), mayAct)
      sessions.markEnded(ended)
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
      const ended = await db.transaction().execute(async (trx) => {
        const ended = await changePassword(trx, { userId: user.id, from: user.passwordHash!, to, sessionId })
        await audit.add(request, { action: 'password.change' }, trx)
        await confirmActor(request)
        return ended
      })
      sessions.markEnded(ended)
      links.notifyChanged(user)
    },

    /**
     * Sets a password with the hash of a token from a mail, ends all sessions of the user, and notifies the user by mail.
     * Throws `InvalidInput` if the token has been used or has expired.
     */
    async resetPassword (request: FastifyRequest, user: Account, hash: Uint8Array, passwordHash: string): Promise<void> {
      // The token permits it, whatever actor the request has.
      const ended = await db.transaction().execute(async (trx) => {
        const ended = await resetPassword(trx, { hash, userId: user.id, passwordHash })
        await audit.add(request, { action: 'password.reset', actorId: user.id }, trx)
        return ended
      })
      sessions.markEnded(ended)
      links.notifyChanged(user)
    },
  }
}

/**
 * The changes of accounts that end sessions. Each is one function, which owns the transaction, the entry of the account log, the
 * revocation and the mail, so that no route can forget one of them.
 */
export default fp(async function accounts (app) {
  app.decorate('usherAccounts', createAccounts(app))
}, { name: 'usher-accounts', dependencies: ['usher-auth', 'usher-audit', 'usher-password-links', 'usher-deleted-users'] })

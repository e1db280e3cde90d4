import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { UserRow } from '../../db/tables.ts'
import { rejectPersonalWords } from '../../schema/password.ts'
import type { CreateUser } from '../../schema/user.ts'
import type { Caller } from '../auth/caller.ts'
import { authorizeCreation } from './permissions.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherNewUsers: ReturnType<typeof createNewUsers>
  }
}

function createNewUsers ({ usherUsers: users, usherPasswords: passwords, usherAudit: audit }: FastifyInstance) {
  return {
    /**
     * Creates a user. Throws `Unauthenticated`, `Forbidden`, `InvalidInput` if the password is the name or the address, `EmailTaken`,
     * and `InvalidToken` if the caller may no longer act.
     * @param given what the schema `CreateUser` accepts
     */
    async create (caller: Caller, given: CreateUser): Promise<UserRow> {
      authorizeCreation(caller, given)
      const { password, ...user } = given
      if (password !== undefined) rejectPersonalWords(password, user)
      const passwordHash = password === undefined ? null : await passwords.hash(password, caller.client)
      return users.create({ ...user, passwordHash, context: audit.contextOf(caller) }, caller)
    },
  }
}

/** Creates users: one function, whoever creates them. */
export default fp(async function newUsers (app) {
  app.decorate('usherNewUsers', createNewUsers(app))
}, { name: 'usher-new-users', dependencies: ['usher-users', 'usher-passwords', 'usher-audit', 'usher-auth'] })

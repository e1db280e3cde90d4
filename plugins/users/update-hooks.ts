import type { FastifyInstance } from 'fastify'
import { foldEmail } from '../../db/login-failures.ts'
import type { Database } from '../../db/tables.ts'
import type { Changes } from '../../db/user-changes.ts'
import { findUsers } from '../../db/users.ts'
import { PatchUser } from '../../schema/user.ts'
import { createParser } from '../../schema/validator.ts'
import type { Caller } from '../auth/caller.ts'

const members = Object.keys(PatchUser.properties)
const parseChanges = createParser(PatchUser)

/** Creates the functions that run the host's hooks for changes of users. */
export function createUpdateHooks ({ usherHooks: hooks, usherUsers: users }: FastifyInstance) {
  return {
    /** Returns the changes as the hook wants them. Throws `UserNotFound`, and what the hook throws. */
    async change (caller: Caller, id: string, given: Changes): Promise<Changes> {
      const user = await users.get(id, caller.client)
      const input = Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== undefined && members.includes(name)))
      return hooks.change('beforeUserUpdate', input, caller, parseChanges, { user })
    },

    /** Runs the hook for the address of a link. It may reject the address, but not replace it. */
    async checkEmail (caller: Caller, id: string, email: string): Promise<void> {
      const user = await users.get(id)
      if (foldEmail(email) === foldEmail(user.email)) return
      await hooks.change('beforeUserUpdate', { email }, caller, (input) => {
        const changes = parseChanges(input)
        if (Object.keys(changes).join() !== 'email' || changes.email !== email) throw new Error('the address of a link is settled')
        return changes
      }, { user })
    },

    /** Returns a function that runs the hook in the transaction of a change that a link of a mail makes, if there is such a hook. */
    during (caller: Caller): ((trx: Database, id: string) => Promise<void>) | undefined {
      const also = hooks.during('onUserUpdate', caller)
      return also && (async (trx, id) => {
        const [user] = await findUsers(trx, [id])
        await also(trx, user!)
      })
    },
  }
}

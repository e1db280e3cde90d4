import { foldEmail } from '../../schema/strings/address.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Changes } from '../../db/users/update-user.ts'
import { findUsers } from '../../db/users/users.ts'
import { userInputs } from '../../schema/users/user-inputs.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { UserRecords } from '../users/user-records.ts'

interface Dependencies extends Pick<Core, 'options'> {
  hooks: HookRunner
  users: UserRecords
}

/** Creates the functions that run the host's hooks for changes and deletions of users. */
export function createUpdateHooks ({ hooks, users, options, options: { userFields } }: Dependencies) {
  const { patch } = userInputs(options)

  return {
    /** Returns the changes as the hook wants them. Throws `UserNotFound`, and what the hook throws. */
    async change (caller: Caller, id: string, given: Changes): Promise<Changes> {
      const user = await users.get(id, caller.client)
      return hooks.change('beforeUserUpdate', patch.pick(given), caller, patch.parse, { user })
    },

    /** Runs the hook for the address of a link. It may reject the address, but not replace it. */
    async checkEmail (caller: Caller, id: string, email: string): Promise<void> {
      const user = await users.get(id)
      if (foldEmail(email) === foldEmail(user.email)) return
      await hooks.change('beforeUserUpdate', { email }, caller, (input) => {
        const changes = patch.parse(input)
        if (Object.keys(changes).join() !== 'email' || changes.email !== email) {
          throw new Error('the address of a link is settled')
        }
        return changes
      }, { user })
    },

    /** Returns a function that runs the hook in the transaction of a deletion, before it, if there is such a hook. */
    beforeDelete (caller: Caller, id: string): ((trx: Database) => Promise<void>) | undefined {
      const hook = hooks.during('onUserDelete', caller)
      return hook && (async (trx) => {
        const [user] = await findUsers(trx, [id], userFields)
        await hook(trx, user!)
      })
    },

    /**
     * Returns a function that runs the hook in the transaction of a change that a link of a mail makes, if there is
     * such a hook.
     */
    during (caller: Caller): ((trx: Database, id: string) => Promise<void>) | undefined {
      const inTransaction = hooks.during('onUserUpdate', caller)
      return inTransaction && (async (trx, id) => {
        const [user] = await findUsers(trx, [id], userFields)
        await inTransaction(trx, user!)
      })
    },
  }
}

import fp from 'fastify-plugin'
import { explainStart } from '../../db/driver/start-errors.ts'
import type { Caller } from '../access/caller.ts'
import { coreOf } from '../core.ts'
import { createAccounts } from './accounts.ts'
import { createDeletedUsers } from './deleted-users.ts'
import { createFirstAdmin } from './first-admin.ts'
import { createNewUsers } from './new-users.ts'
import { setPassword, type SetPassword, type SetPasswordOptions } from './set-password.ts'
import { createUserExports, type UserExports } from './user-exports.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAccounts: Accounts
  }
}

export type NewUsers = ReturnType<typeof createNewUsers>

export interface Accounts extends ReturnType<typeof createAccounts>, UserExports {
  readonly newUsers: NewUsers
  setPassword (
    caller: Caller, userId: string, passwordHash: string, options?: SetPasswordOptions
  ): Promise<SetPassword>
}

/**
 * Creates, changes and deletes users: the operations that the policy permits, with everything that must happen along
 * with them.
 */
export default fp(async function accounts (app) {
  const {
    usherAccess: access, usherAudit: audit, usherHooks: hooks, usherMailLinks: links, usherSignIn: signIn,
    usherThrottle: throttle, usherUsers: { records: users },
  } = app
  const dependencies = { ...coreOf(app), ...access, ...signIn, ...links, throttle, audit, hooks, users }
  // Uploads are a part that can be left out.
  const sweep = app.hasDecorator('usherUploads') ? app.usherUploads.storage.sweep : undefined
  const deletedUsers = createDeletedUsers({ ...dependencies, sweep })
  app.decorate('usherAccounts', {
    ...createAccounts({ ...dependencies, deletedUsers }),
    ...createUserExports(dependencies),
    newUsers: createNewUsers(dependencies),
    setPassword: (caller, userId, passwordHash, options) =>
      setPassword(dependencies, caller, userId, passwordHash, options),
  })
  // Not before, because its event must reach handlers that the host registers after Usher.
  app.addHook('onReady', () =>
    createFirstAdmin(dependencies).catch((error) => { throw explainStart(error, app.usherOptions.schema) }))
}, {
  name: 'usher-accounts',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-access', 'usher-audit', 'usher-hooks',
    'usher-mail-links', 'usher-sign-in', 'usher-throttle', 'usher-users',
  ],
})

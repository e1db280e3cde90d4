import type { Changes } from '../../../db/user-changes.ts'
import type { Command } from '../command.ts'
import { withService } from '../with-service.ts'
import { findUser, showUser, USER } from './shown.ts'

export const promote = changing('Give a user the role admin.', '', { role: 'admin' }, 'is an admin')

export const demote = changing('Give a user the role user.', 'Ends the sessions of the user. The last admin cannot be demoted.',
  { role: 'user' }, 'has the role user')

export const disable = changing('Disable a user.', 'The user cannot log in, and all sessions end at once on every node. The data of the user stay. ' +
  'The last\nadmin cannot be disabled.', { disabled: true }, 'is disabled')

export const enable = changing('Enable a user who was disabled.', '', { disabled: false }, 'is enabled')

// Returns a command that changes a user like PATCH /api/users/{id}.
function changing (summary: string, effect: string, changes: Changes, result: string): Command {
  return {
    summary,
    details: ['USER is the id or the email address of the user.', effect].filter(Boolean).join(' '),
    arguments: ['USER'],
    json: `{ user: ${USER} }`,
    options: {},
    run: (_, [given = '']) => withService(async ({ app, db, caller }) => {
      const { id } = await findUser(db, given)
      const user = await app.usherAccounts.update(caller, id, changes)
      return { text: `${user.email} ${result}.`, json: { user: showUser(user) } }
    }),
  }
}

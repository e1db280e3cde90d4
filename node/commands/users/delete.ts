import type { Command } from '../command.ts'
import { confirm } from '../confirm.ts'
import { withService } from '../with-service.ts'
import { findUser } from './shown.ts'

export default {
  details: 'USER is the id or the email address of the user. Sessions end at once on every node. The last admin cannot be deleted.\n\n' +
    '  --yes  do not ask for confirmation',
  arguments: ['USER'],
  json: '{ id, email, deleted: boolean }',
  options: { yes: { type: 'boolean' } },

  run: ({ yes }, [given = ''], shell) => withService(shell, async ({ app, db, caller }) => {
    const { id, email } = await findUser(db, given)
    const deleted = yes === true || await confirm(shell, `Delete ${email} with all posts and uploads?`)
    if (deleted) await app.usherAccounts.delete(caller, id)
    return { text: `${email} was ${deleted ? '' : 'not '}deleted.`, json: { id, email, deleted } }
  }),
} satisfies Command

import type { Command } from '../command.ts'
import { confirm } from '../confirm.ts'
import { withService } from '../with-service.ts'
import { changeMany, FILE_JSON, fileHelp, fileOptions } from './many.ts'
import { findUser } from './shown.ts'

export default {
  details: 'USER is the id or the email address of the user. Sessions end at once on every node. The last admin cannot be deleted.\n\n' +
    `  --yes              do not ask for confirmation\n${fileHelp(19)}`,
  arguments: ['USER'],
  insteadOfArguments: ['file'],
  json: `{ id, email, deleted: boolean }, with --file ${FILE_JSON}`,
  options: { yes: { type: 'boolean' }, ...fileOptions },

  async run (values, args, shell) {
    const isConfirmed = async (users: string) =>
      values['yes'] === true || confirm(shell, `Delete ${users} with all posts and uploads?`)
    if (values['file'] !== undefined) {
      return changeMany(values, args, shell, {
        task: 'users delete',
        label: 'Deleting',
        done: 'deleted',
        deletes: true,
        mayBegin: () => isConfirmed(`all users in ${values['file'] as string}`),
        async change ({ app, caller }, { id }) {
          await app.usherAccounts.delete(caller, id)
          return true
        },
      })
    }
    return withService(shell, async ({ app, db, caller }) => {
      const { id, email } = await findUser(db, args[0] ?? '')
      const deleted = await isConfirmed(email)
      if (deleted) await app.usherAccounts.delete(caller, id)
      return { text: `${email} was ${deleted ? '' : 'not '}deleted.`, json: { id, email, deleted } }
    })
  },
} satisfies Command

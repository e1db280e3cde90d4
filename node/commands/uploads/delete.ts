import { deleteUpload } from '../../../db/uploads/uploads.ts'
import { terminalContext } from '../audit.ts'
import type { Command } from '../command.ts'
import { confirm } from '../confirm.ts'
import { nameUsers } from '../users/shown.ts'
import { withDatabase } from '../with-database.ts'
import { requireUpload } from './shown.ts'

export default {
  details: 'ID is that of the list: uploads list. Downloads end at once on every node, and a running node removes the file.\n\n' +
    '  --yes  do not ask for confirmation',
  arguments: ['ID'],
  json: '{ id, userId, filename, deleted: boolean }',
  options: { yes: { type: 'boolean' } },

  run: ({ yes }, [given = ''], shell) => withDatabase(shell, async ({ db }) => {
    const { id, userId, filename } = await requireUpload(db, given)
    const name = await nameUsers(db, [userId])
    const deleted = yes === true || await confirm(shell, `Delete ${filename} of ${name(userId)}?`)
    if (deleted) {
      // The command waits for the statement, however late it begins.
      const until = 'infinity'
      await deleteUpload(db, id, null, { until, entry: { ...terminalContext, action: 'upload.delete', userId } })
    }
    return { text: `${filename} was ${deleted ? '' : 'not '}deleted.`, json: { id, userId, filename, deleted } }
  }),
} satisfies Command

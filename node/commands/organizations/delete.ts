import type { Command } from '../command.ts'
import { confirm } from '../confirm.ts'
import { withOrganizations } from './shown.ts'

export default {
  details: 'ID is the id of the organisation. Its memberships end at once on every node. It stays if a table of the host refers to it.\n\n' +
    '  --yes  do not ask for confirmation',
  arguments: ['ID'],
  json: '{ id, name, deleted: boolean }',
  options: { yes: { type: 'boolean' } },

  run: ({ yes }, [given = ''], shell) => withOrganizations(shell, async ({ organizations, caller }) => {
    const { id, name, slug } = await organizations.get(caller, given)
    const deleted = yes === true || await confirm(shell, `Delete ${name} (${slug}) with all memberships?`)
    if (deleted) await organizations.delete(caller, id)
    return { text: `${name} was ${deleted ? '' : 'not '}deleted.`, json: { id, name, deleted } }
  }),
} satisfies Command

import type { Command } from '../command.ts'
import { formatRecord, formatTable } from '../table.ts'
import { listAllMembers, MEMBER, ORGANIZATION, showOrganization, withOrganizations } from './shown.ts'

export default {
  details: 'ID is the id of the organisation, which organizations list shows.',
  arguments: ['ID'],
  json: `{ organization: ${ORGANIZATION}, members: [${MEMBER}] }`,
  options: {},

  run: (_, [id = ''], shell) => withOrganizations(shell, async (context) => {
    const { organizations, caller } = context
    const organization = showOrganization(await organizations.get(caller, id))
    const members = await listAllMembers(context, organization.id)
    const table = formatTable(['USER', 'EMAIL', 'NAME', 'ROLE', 'STATE', 'SINCE'], members.map(
      ({ userId, email, name, role, disabled, createdAt }) =>
        [userId, email, name, role, disabled ? 'disabled' : 'enabled', createdAt]
    ))
    return { text: `${formatRecord({ ...organization })}\n\n${table}`, json: { organization, members } }
  }),
} satisfies Command

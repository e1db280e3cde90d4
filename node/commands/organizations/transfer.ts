import { OWNER } from '../../../schema/options/organizations.ts'
import { MembershipNotFound } from '../../../schema/organizations/organizations.ts'
import type { Command } from '../command.ts'
import { findUser } from '../users/shown.ts'
import { listAllMembers, ORGANIZATION, showOrganization, withOrganizations } from './shown.ts'

export default {
  details: 'Makes USER, by id or email address, an owner of the organisation, also one who was no member. Tokens and API keys for\n' +
    'a former role end.\n\n' +
    '  --demote  make all other owners admins of the organisation',
  arguments: ['ID', 'USER'],
  json: `{ organization: ${ORGANIZATION}, ownerId, demoted: number }`,
  options: { demote: { type: 'boolean' } },

  run: ({ demote }, [id = '', user = ''], shell) => withOrganizations(shell, async (context) => {
    const { organizations, caller, db } = context
    const organization = showOrganization(await organizations.get(caller, id))
    const { id: ownerId, email } = await findUser(db, user)
    await organizations.updateMember(caller, organization.id, ownerId, OWNER).catch(async (error: unknown) => {
      if (!(error instanceof MembershipNotFound)) throw error
      await organizations.addMember(caller, organization.id, { userId: ownerId, role: OWNER })
    })
    const owners = demote ? await listAllMembers(context, organization.id, OWNER) : []
    const others = owners.filter(({ userId }) => userId !== ownerId)
    for (const { userId } of others) await organizations.updateMember(caller, organization.id, userId, 'admin')
    const demoted = others.length
    return {
      text: `${email} is an owner of ${organization.name}.` +
        (demoted === 0 ? '' : ` ${demoted} other owner${demoted === 1 ? ' is an admin' : 's are admins'} now.`),
      json: { organization, ownerId, demoted },
    }
  }),
} satisfies Command

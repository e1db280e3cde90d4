import { createParser } from '../../../schema/http/validator.ts'
import { CreateOrganization } from '../../../schema/organizations/organizations.ts'
import { WrongArguments, type Command } from '../command.ts'
import { findUser } from '../users/shown.ts'
import { ORGANIZATION, showOrganization, withOrganizations } from './shown.ts'

const parse = createParser(CreateOrganization)

export default {
  details: '  --name <name>          the name of the organisation, required\n' +
    '  --owner <id or email>  the user who is its owner, required\n' +
    '  --slug <slug>          unique; by default it follows from the name',
  json: `{ organization: ${ORGANIZATION}, ownerId }`,
  options: { name: { type: 'string' }, owner: { type: 'string' }, slug: { type: 'string' } },

  async run ({ name, owner, slug }, _, shell) {
    for (const [option, value] of Object.entries({ name, owner })) {
      if (value === undefined) throw new WrongArguments(`--${option} is required.`)
    }
    const given = parse({ name, ...slug !== undefined && { slug } })
    return withOrganizations(shell, async ({ organizations, caller, db }) => {
      const { id: ownerId, email } = await findUser(db, String(owner))
      const organization = showOrganization(await organizations.create(caller, given, { ownerId }))
      return {
        text: `${organization.name} (${organization.slug}) was created with the id ${organization.id}. Its owner is ${email}.`,
        json: { organization, ownerId },
      }
    })
  },
} satisfies Command

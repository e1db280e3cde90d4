import t from 'tap'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const { options, mails } = organizationOptions()
const usher = await createUsher(t, options)
const { inject } = usher
const { sql, createVerified, found, add, tokenTo } = withOrganizations(t, usher, mails)

t.test("11.7 an export has the user's memberships, and invitations to the verified address", async (t) => {
  const [founder, ada] = [await createVerified(), await createVerified('Ada')]
  const [joined, invited] = [await found(founder, 'Joined'), await found(founder, 'Invited')]
  const membershipId = await add(joined, ada)
  await inject('POST', `/api/organizations/${invited}/invitations`, {
    headers: founder.headers, payload: { email: ada.email.toUpperCase(), role: 'admin' },
  })
  const exportOf = async ({ id, headers }: LoggedIn) => (await inject('GET', `/api/users/${id}/export`, { headers })).json()
  const exported = await exportOf(ada)
  t.match(exported.memberships, [{ id: membershipId, organizationId: joined, organization: 'Joined', role: 'member' }])
  t.match(exported.pending.invitations, [{ organizationId: invited, organization: 'Invited', role: 'admin' }])
  t.notMatch(JSON.stringify(exported), await tokenTo(ada.email.toUpperCase()), 'without the token')

  t.match((await exportOf(founder)).memberships, [{ organization: 'Invited', role: 'owner' }, { organization: 'Joined' }])
  t.strictSame((await exportOf(founder)).pending.invitations, [])
  await sql`update users set email_verified = false where id = ${ada.id}`
  t.strictSame((await exportOf(ada)).pending.invitations, [], 'the address may be that of somebody else')
})

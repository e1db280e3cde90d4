import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'

const DATABASE_URL = await createDatabase(t)
const cwd = t.testdir()
const settings = { DATABASE_URL, DATA_DIR: join(cwd, 'data'), PRINT_SECRETS: 'false' }
const ORGANIZATIONS = 'true'

const run = (args: string[], more: Record<string, string> = { ORGANIZATIONS }) =>
  runCommand(args, { ...settings, ...more }, cwd)
const json = async (...args: string[]) => {
  const { stdout, stderr } = await run([...args, '--json'])
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}
const rolesOf = async (id: string) => {
  const { members } = await json('organizations', 'show', id) as { members: { email: string, role: string }[] }
  return Object.fromEntries(members.map(({ email, role }) => [email.split('@')[0], role]))
}

t.test('19.7 commands create, list, show, transfer and delete organisations', async (t) => {
  await run(['admin', 'create', '--email', 'root@example.com'])
  for (const name of ['ada', 'bob']) await run(['users', 'create', '--email', `${name}@example.com`, '--name', name])
  const { organization, ownerId } =
    await json('organizations', 'create', '--name', 'Analytical Engines', '--owner', 'ada@example.com')
  t.match(organization, { name: 'Analytical Engines', slug: 'analytical-engines' })
  const { id } = organization
  t.strictSame((await json('organizations', 'list')), { organizations: [organization], next: null })
  t.strictSame((await json('organizations', 'list', '--search', 'other')).organizations, [])
  t.match((await run(['organizations', 'list'])).stdout, /analytical-engines +Analytical Engines/)
  t.match(await json('organizations', 'show', id), {
    organization, members: [{ userId: ownerId, email: 'ada@example.com', role: 'owner', disabled: false }],
  })

  t.match(await json('organizations', 'transfer', id, 'bob@example.com'), { demoted: 0 })
  t.strictSame(await rolesOf(id), { ada: 'owner', bob: 'owner' })
  const demoting = await run(['organizations', 'transfer', id, 'bob@example.com', '--demote'])
  t.equal(demoting.stdout.trim(), 'bob@example.com is an owner of Analytical Engines. 1 other owner is an admin now.')
  t.strictSame(await rolesOf(id), { ada: 'admin', bob: 'owner' })
  t.match(await json('organizations', 'transfer', id, 'ada@example.com', '--demote'), { demoted: 1 })
  t.strictSame(await rolesOf(id), { ada: 'owner', bob: 'admin' })

  t.match(await run(['organizations', 'delete', id]), { code: 1, stderr: /--yes/ })
  t.strictSame(await json('organizations', 'delete', id, '--yes'), { id, name: 'Analytical Engines', deleted: true })
  t.match(await run(['organizations', 'show', id]), { code: 1, stderr: /Organisation not found/ })
  const { entries } = await json('audit', '--action', 'organization.delete')
  t.match(entries, [{ actorId: null }])
})

t.test('19.7 wrong arguments and a missing setting are sentences', async (t) => {
  t.match(await run(['organizations', 'create', '--name', 'x']), { code: 2, stderr: /--owner is required/ })
  t.match(await run(['organizations', 'list', '--limit', '0']), { code: 2 })
  t.match(await run(['organizations', 'transfer', 'x']), { code: 2, stderr: /needs ID and USER/ })
  t.match(await run(['organizations', 'list'], {}), { code: 1, stderr: /There are no organisations: set ORGANIZATIONS to true/ })
})

t.test('19.1 the setting ORGANIZATIONS is true, false, or JSON with roles', async (t) => {
  const config = async (value: string) => (await run(['config'], { ORGANIZATIONS: value }))
  t.match((await config('true')).stdout, /ORGANIZATIONS +true/)
  t.match((await config('{"roles":{"billing":["organizations:update"]},"create":"admins"}')).stdout, /ORGANIZATIONS +\{"roles"/)
  for (const [value, message] of [
    ['yes', /ORGANIZATIONS must be true, false, or JSON/],
    ['{"roles":{"billing":["invoices:send"]}}', /ORGANIZATIONS has the role billing with the action invoices:send/],
    ['{"maxPerUsers":1}', /ORGANIZATIONS has no member maxPerUsers/],
    ['{"create":"nobody"}', /ORGANIZATIONS is invalid/],
  ] as const) t.match(await run(['organizations', 'list'], { ORGANIZATIONS: value }), { code: 1, stderr: message }, value)
})

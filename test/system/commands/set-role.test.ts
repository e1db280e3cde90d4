import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { runCommand } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'

const DATABASE_URL = await createDatabase(t)
const cwd = t.testdir()
const ROLES = JSON.stringify({ moderator: ['posts:delete'], 'content-editor': ['posts:update'] })
const settings = { DATABASE_URL, DATA_DIR: join(cwd, 'data'), PRINT_SECRETS: 'false' }

const run = (args: string, more: Record<string, string> = { ROLES }) => runCommand(args.split(' '), { ...settings, ...more }, cwd)
const json = async (args: string, more?: Record<string, string>) => JSON.parse((await run(`${args} --json`, more)).stdout)

async function rolesOf (): Promise<Record<string, string>> {
  const { users } = await json('users list --sort email') as { users: { email: string, role: string }[] }
  return Object.fromEntries(users.map(({ email, role }) => [email.split('@')[0], role]))
}

t.test('20.1 commands know the roles of the setting', async (t) => {
  await run('admin create --email root@example.com')
  for (const [name, role] of [['ada', 'moderator'], ['bob', 'moderator'], ['eve', 'content-editor'], ['tom', 'user']]) {
    t.match(await json(`users create --email ${name}@example.com --name ${name} --role ${role}`), { user: { role } })
  }
  const wrong = await run('users create --email x@example.com --name x --role editor')
  t.match([wrong.code, wrong.stderr], [2, /role must be one of admin, user, moderator, content-editor|role must be/])
  t.equal((await json('users list --role moderator')).users.length, 2)
  t.equal((await run('users list --role editor')).code, 2)
  t.match((await run('config')).stdout, /ROLES +\{"moderator":\["posts:delete"\]/)
})

t.test('20.1 a setting that is wrong stops commands with a sentence', async (t) => {
  for (const [given, message] of [
    ['{"moderator":["posts:delte"]}', 'ROLES gives moderator the action "posts:delte", which the policy does not have.'],
    ['{"admin":[]}', /ROLES cannot have a role "admin": /],
    ['moderator: posts:delete', 'ROLES must be JSON with a list of actions for each role, such as {"moderator":["posts:delete"]}.'],
    ['{"moderator":"posts:delete"}', /ROLES must be JSON/],
    ['[]', /ROLES must be JSON/],
  ] as const) t.match(await run('users list', { ROLES: given }), { code: 1, stderr: message }, given)
})

t.test('16.7 an import takes the roles of the setting, and rejects others', async (t) => {
  writeFileSync(join(cwd, 'users.ndjson'), ['moderator', 'editor', 'content-editor']
    .map((role) => JSON.stringify({ name: role, email: `imported-${role}@example.com`, role })).join('\n'))
  t.match(await json('users import users.ndjson'), { imported: 2, rejected: 1, admins: 0 })
  t.match(await rolesOf(), { 'imported-moderator': 'moderator', 'imported-content-editor': 'content-editor' })
})

t.test('20.1 set-role gives a user, those of a file, or those of a role another role', async (t) => {
  t.match((await run('users set-role tom@example.com --to moderator')).stderr, 'is not verified')
  t.match(await json('users set-role tom@example.com --to moderator --yes'), { user: { role: 'moderator' }, ways: [] })
  t.equal((await run('users set-role tom@example.com --to user')).stdout.trim(), 'tom@example.com has the role user.')
  writeFileSync(join(cwd, 'some.txt'), 'tom@example.com\neve@example.com\nnobody@example.com\n')
  const many = await json('users set-role --file some.txt --to content-editor --yes')
  t.match(many, { changed: 1, skipped: 1, rejected: 1 })
  t.equal((await rolesOf())['tom'], 'content-editor')
  t.match(await json('users set-role --from admin --to user'), {
    changed: 0, rejected: [{ reason: 'The last admin can be neither deleted nor demoted nor disabled' }],
  })
  for (const wrong of ['tom@example.com', 'tom@example.com --to editor', '--from moderator --file some.txt --to user', '--to user']) {
    t.equal((await run(`users set-role ${wrong}`)).code, 2, wrong)
  }
  t.equal((await run('users set-role --from user --to moderator')).code, 1, 'many users get a role only with --yes')
})

t.test('20.1 users of a role that the options lack are moved by the command that the failed start names', async (t) => {
  const start = () => createUsher(t, { databaseUrl: DATABASE_URL, schema: 'usher', roles: { 'content-editor': [] }, admin: undefined, onNoAdmin () {} })
  await t.rejects(start(), { message: /^usher: 3 users have the role moderator, .*"npm start -- users set-role --from moderator --to user"$/ })
  const without = { ROLES: '{"content-editor":["posts:update"]}' }
  t.equal((await run('users set-role --from moderator --to user', without)).stdout.trim(), '3 users were moved from moderator to user.')
  t.match(await json('users set-role --from moderator --to user', without), { changed: 0, rejected: [] })
  t.match(await rolesOf(), { ada: 'user', bob: 'user', 'imported-moderator': 'user', eve: 'content-editor' })
})

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import postgres, { type Sql, type TransactionSql } from 'postgres'
import t from 'tap'
import usherPlugin, { type UsherOptions } from '../../app.ts'
import { withUsers, type LoggedIn } from '../helpers/app.ts'
import { mountOptions } from '../helpers/host.ts'
import { createKey } from '../helpers/api-keys.ts'
import { withOrganizations } from '../helpers/organizations.ts'
import { until } from '../helpers/until.ts'

// Its types are those of an app that has told Usher's about its actions.
interface Example {
  organizations: UsherOptions['organizations']
  createNotes (sql: Sql, where: { schema: string, role: string }): Promise<void>
  addNotes (app: FastifyInstance, sql: Sql, schema: string): void
  inOrganization<Result> (
    sql: Sql, request: FastifyRequest, work: (trx: TransactionSql, id: string) => Promise<Result>
  ): Promise<Result>
}

const file = fileURLToPath(new URL('../../examples/organizations/notes.ts', import.meta.url))
const { organizations, createNotes, addNotes, inOrganization } = await import(file) as Example

const options = {
  ...await mountOptions(t),
  organizations,
  policy: { 'notes:read': () => false, 'notes:write': () => false } as never,
}
const app = Fastify({ pluginTimeout: 0 })
await app.register(usherPlugin, options)
const schema = options.schema!
const owner = postgres(options.databaseUrl!, { max: 1, onnotice: () => {} })
// What docs/host/organizations.md asks for: a role that owns nothing. The server accepts connections of one user only,
// who becomes that role.
const role = `notes_${randomBytes(8).toString('hex')}`
await owner.unsafe(`create role ${role}`)
await owner.unsafe(`grant ${role} to current_user`)
await createNotes(owner, { schema, role })
const sql = postgres(options.databaseUrl!, { connection: { role }, max: 2, onnotice: () => {} })
t.teardown(async () => {
  await app.close()
  await sql.end()
  await owner.unsafe(`drop owned by ${role}`)
  await owner.unsafe(`drop role ${role}`)
  await owner.end()
})

addNotes(app, sql, schema)
const notes = sql`${sql(schema)}.app_notes`
const { requireOrganization } = app.usher
app.get('/members', { onRequest: requireOrganization() }, async ({ actor }) => actor!.organization)
// A condition that forgets the organisation, as a mistake or an injection has it.
app.get('/hole', { onRequest: requireOrganization() }, async (request) =>
  inOrganization(sql, request, (trx) => trx`select organization_id, text from ${notes} where true or text = ''`))
app.get('/write-hole', { onRequest: requireOrganization() }, async (request) =>
  inOrganization(sql, request, async (trx) => {
    const { count } = await trx`update ${notes} set text = 'theirs'`
    return { count }
  }))

const usher = await withUsers(app, options)
const { createVerified, found, createMember } = withOrganizations(t, usher, new Map())

async function tokenFor (user: LoggedIn, organizationId: string): Promise<{ authorization: string }> {
  const response = await usher.inject('POST', '/api/auth/token', { headers: user.headers, payload: { organizationId } })
  return { authorization: `Bearer ${response.json().token}` }
}

const send = (headers: object, url: string, text?: string) =>
  app.inject({ url, headers: { ...headers }, ...text !== undefined && { method: 'POST', payload: { text } } })

t.test('19.7 docs/host/organizations.md shows the app that this test runs', async (t) => {
  const document = readFileSync(fileURLToPath(new URL('../../docs/host/organizations.md', import.meta.url)), 'utf8')
  t.ok(document.includes(readFileSync(file, 'utf8')))
})

t.test('19.7 requireOrganization asks the role in the organisation of the token', async (t) => {
  const founder = await createVerified()
  const id = await found(founder)
  const [reader, editor] = [await createMember(id), await createMember(id, 'editor')]
  const statuses = async (headers: object) => [
    (await send(headers, '/notes')).statusCode, (await send(headers, '/notes', 'A note')).statusCode,
    (await send(headers, '/members')).statusCode,
  ]
  t.strictSame(await statuses(await tokenFor(founder, id)), [200, 201, 200])
  t.strictSame(await statuses(await tokenFor(editor, id)), [200, 201, 200])
  t.strictSame(await statuses(await tokenFor(reader, id)), [200, 403, 200])
  t.strictSame(await statuses({}), [401, 401, 401])
  t.equal((await send(await tokenFor(reader, id), '/notes', 'A note')).json().code, 'FORBIDDEN')
  const { code, statusCode } = (await send(reader.headers, '/members')).json()
  t.strictSame([statusCode, code], [403, 'ORGANIZATION_REQUIRED'])
  t.match((await send({}, '/members')).headers['www-authenticate'], /^Bearer/)
  t.throws(() => requireOrganization('notes:share' as never), /no action notes:share/)
  // The entry is written after the response.
  await until('the rejection is in the account log', async () => (await usher.inject(
    'GET', `/api/audit?action=access.denied&user=${reader.id}`, { headers: usher.admin.headers }
  )).json().length > 0)

  const { headers } = await createKey(usher, founder, { name: 'Reader', organizationId: id, actions: ['notes:read'] })
  t.strictSame(await statuses(headers), [200, 403, 403], 'an API key permits its actions only')
})

t.test('19.3 a token for an organisation is rejected by routes of the host when the membership ends', async (t) => {
  const id = await found(await createVerified())
  const editor = await createMember(id, 'editor')
  const headers = await tokenFor(editor, id)
  t.equal((await send(headers, '/notes', 'A note')).statusCode, 201)
  await app.usher.organizations.members.remove(id, editor.id)
  t.strictSame((await send(headers, '/notes')).json().code, 'MEMBERSHIP_ENDED')
})

t.test('19.7 a hole in a condition shows and changes nothing of another organisation', async (t) => {
  const [one, other] = [await createVerified(), await createVerified()]
  const [own, foreign] = [await found(one), await found(other)]
  await send(await tokenFor(one, own), '/notes', 'Mine')
  await send(await tokenFor(other, foreign), '/notes', 'Theirs')
  const headers = await tokenFor(one, own)
  t.strictSame((await send(headers, '/hole')).json(), [{ organization_id: own, text: 'Mine' }])
  t.strictSame((await send(headers, '/write-hole')).json(), { count: 1 })
  t.match((await send(await tokenFor(other, foreign), '/notes')).json(), [{ text: 'Theirs' }])
  t.equal((await sql`select from ${notes}`).length, 0, 'nothing outside of a transaction with an organisation')
  await t.rejects(sql.begin(async (trx) => {
    await trx`select set_config('app.organization', ${own}, true)`
    await trx`insert into ${notes} (organization_id, text) values (${foreign}, 'Planted')`
  }), { code: '42501' })
})

t.test('19.7 the role of the app can neither switch the policy off nor read anything of Usher', async (t) => {
  for (const statement of [
    `alter table ${schema}.app_notes disable row level security`, `drop policy of_organization on ${schema}.app_notes`,
    `select from ${schema}.users`,
  ]) await t.rejects(sql.unsafe(statement), { code: '42501' }, statement)
})

t.test('19.7 the deletion of an organisation deletes the rows that refer to it', async (t) => {
  const founder = await createVerified()
  const id = await found(founder)
  await send(await tokenFor(founder, id), '/notes', 'A note')
  const count = async () => {
    const rows = await sql.begin(async (trx) => {
      await trx`select set_config('app.organization', ${id}, true)`
      return trx`select from ${notes}`
    })
    return rows.length
  }
  t.equal(await count(), 1)
  await app.usher.organizations.delete(id)
  t.equal(await count(), 0)
})

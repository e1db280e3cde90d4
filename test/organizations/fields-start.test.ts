import { Type, type TSchema } from '@sinclair/typebox'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import usher, { migrate, type UsherOptions } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { mountOptions } from '../helpers/host.ts'
import { newSlug, organizationOptions, withOrganizations } from '../helpers/organizations.ts'
import { openSql } from '../helpers/sql.ts'

const optionsOf = (properties: Record<string, TSchema>): UsherOptions['organizations'] =>
  ({ fields: Type.Object(properties) })

const text = Type.Optional(Type.String())

/** Returns the message with which a start fails. */
async function failureOf (t: Test, organizations: UsherOptions['organizations'], given?: UsherOptions): Promise<string> {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  return app.register(usher, { databaseUrl: 'postgres://nobody@127.0.0.1:1/none', ...given, organizations })
    .then(() => 'started', ({ message }: Error) => message)
}

t.test('19.2 a field of organisations that cannot be one stops the start with a sentence that names it', async (t) => {
  const wrong: [Record<string, TSchema>, RegExp][] = [
    [{ slug: text }, /^usher: organizations\.fields\.slug is reserved by Usher: choose another name$/],
    [{ role: text }, /fields\.role is reserved/],
    [{ ctid: text }, /fields\.ctid is reserved/],
    [{ vat_id: text }, /fields\.vat_id is not a name of a field/],
    [{ plan: Type.String() }, /fields\.plan must be optional or have a default, because existing organisations have no value$/],
    [{ plan: Type.Optional(Type.Null()) }, /fields\.plan must be a string, an integer/],
    [{ plan: Type.Optional(Type.String({ 'x-read': 'anyone' })) }, /fields\.plan has an x-read that is not member or admin$/],
    [{ plan: Type.Optional(Type.String({ 'x-write': 'owner' })) }, /fields\.plan has an x-write that is not member or admin$/],
    [{ plan: Type.Optional(Type.String({ maxlength: 3 })) }, /fields\.plan is not a valid field: .*unknown keyword/],
    [{ plan: Type.String({ maxLength: 3, default: 'free' }) }, /fields\.plan is not a valid field: its default: plan must/],
  ]
  for (const [properties, sentence] of wrong) t.match(await failureOf(t, optionsOf(properties)), sentence)
  t.match(await failureOf(t, { fields: 'plan' as never }), /organizations\.fields must be an object of TypeBox/)
  t.match(await failureOf(t, { field: {} } as never), /organizations has no member field: there are .*, fields$/)
})

t.test('19.2 columns are added at the start, also by migrate, and one of another type stops it', async (t) => {
  const options = { ...await mountOptions(t), mailer: () => {} }
  const { databaseUrl, schema } = options
  await migrate({ databaseUrl, schema, organizations: optionsOf({ plan: text }) })
  const sql = openSql(t, { options })
  const columns = async () => (await sql`
    select attname as name from pg_attribute where attrelid = 'organizations'::regclass and attnum > 0`).map(({ name }) => name)
  t.ok((await columns()).includes('plan'))
  const more = optionsOf({ plan: text, seats: Type.Optional(Type.Integer()) })
  const node = await createUsher(t, { ...options, organizations: more })
  t.ok((await columns()).includes('seats'))
  const older = await createUsher(t, { ...options, organizations: true })
  const { found } = withOrganizations(t, older, new Map())
  const id = await found(older.admin)
  const payload = { plan: 'pro', seats: 3 }
  t.match((await node.inject('PATCH', `/api/organizations/${id}`, { headers: node.admin.headers, payload })).json(), payload)
  const { headers } = older.admin
  const renamed = await older.inject('PATCH', `/api/organizations/${id}`, { headers, payload: { name: 'New', plan: 'x' } })
  t.match(renamed.json(), { name: 'New', plan: undefined }, 'a node without the fields works beside it')
  t.match((await node.inject('GET', `/api/organizations/${id}`, { headers: node.admin.headers })).json(), { name: 'New', ...payload })
  t.match(
    await failureOf(t, optionsOf({ seats: text }), options),
    /organizations\.fields\.seats needs a column of the type text, but ".+"\.organizations has a column "seats" of the type bigint/
  )
  await sql`alter table organizations alter column plan set default '', add check (plan is not null)`
  await sql`update organizations set plan = ''`
  await sql`alter table organizations alter column plan set not null`
  t.match(await failureOf(t, optionsOf({ plan: text }), options), /organizations\.fields\.plan needs a column that may be null/)
})

t.test('19.2 a page of organisations with large fields has fewer rows, and the next page goes on there', async (t) => {
  const { options, mails } = organizationOptions({ organizations: optionsOf({ about: text }) })
  const usher = await createUsher(t, options)
  const { sql } = withOrganizations(t, usher, mails)
  const { headers } = usher.admin
  await sql`insert into organizations (id, name, slug, about)
    select gen_random_uuid(), 'Large', ${newSlug()} || number, repeat('x', 65536) from generate_series(1, 150) as number`
  const seen = new Set<string>()
  let pages = 0
  for (let path: string | undefined = '/api/organizations?limit=1000'; path !== undefined; pages++) {
    const response = await usher.inject('GET', path, { headers })
    t.equal(response.statusCode, 200)
    const rows: { id: string, about: string }[] = response.json()
    t.ok(rows.length <= 64 && rows.every(({ about }) => about.length === 65_536), `${rows.length} rows`)
    for (const { id } of rows) seen.add(id)
    path = /<([^>]+)>; rel="next"/.exec(String(response.headers['link']))?.[1]
  }
  t.same([seen.size, pages], [150, 3])
})

import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import type { Hooks } from '../../app.ts'
import { actorOf } from '../helpers/actor.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'
import { post } from '../helpers/graphql.ts'
import { newSlug, organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const fields = Type.Object({
  website: Type.Optional(Type.String({ format: 'uri', maxLength: 200, 'x-write': 'member' })),
  seats: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, 'x-write': 'member' })),
  plan: Type.Union([Type.Literal('free'), Type.Literal('pro')], { default: 'free' }),
  open: Type.Optional(Type.Boolean({ 'x-write': 'member' })),
  colors: Type.Object({ accent: Type.Optional(Type.String()) }, { default: { accent: 'blue' }, 'x-write': 'member' }),
  rate: Type.Optional(Type.Number()),
  note: Type.Optional(Type.String({ 'x-read': 'admin', title: 'Internal note' })),
})
const NAMES = Object.keys(fields.properties)
const ofMembers = NAMES.filter((name) => name !== 'note')
const full = {
  website: 'https://example.com/a?b=1',
  seats: 12,
  plan: 'pro',
  open: false,
  colors: { accent: 'red', list: [1, null, 'é'] },
  rate: -1.25e-7,
  note: 'careful',
}
const defaults = { plan: 'free', colors: { accent: 'blue' } }

let hooks: Hooks = {}
const { options, mails } = organizationOptions({
  organizations: { fields, roles: { billing: ['organizations:update'] } },
  console: true,
  hooks: {
    beforeOrganizationCreate: (organization, context) => hooks.beforeOrganizationCreate?.(organization, context),
    beforeOrganizationDelete: (organization, context) => hooks.beforeOrganizationDelete?.(organization, context),
  },
})
const usher = await createUsher(t, options)
const { app, inject, admin } = usher
const { organizations } = app.usher
const { sql, createVerified, found, createMember } = withOrganizations(t, usher, mails)

type Values = Record<string, unknown>
const only = (shown: object, names: readonly string[] = NAMES): Values =>
  Object.fromEntries(Object.entries(shown).filter(([name]) => names.includes(name)))
const pathOf = (id: string) => `/api/organizations/${id}`
const read = (id: string, { headers }: LoggedIn) => inject('GET', pathOf(id), { headers })
const patch = (id: string, { headers }: LoggedIn, payload: object, more = {}) =>
  inject('PATCH', pathOf(id), { headers: { ...headers, ...more }, payload })

t.beforeEach(() => { hooks = {} })

t.test('19.2 an admin of the service writes every field of the host, and reads what was written', async (t) => {
  const payload = { name: 'Engines', slug: newSlug(), ...full }
  const created = await inject('POST', '/api/organizations', { headers: admin.headers, payload })
  t.equal(created.statusCode, 201, created.body)
  t.same(only(created.json()), full)
  const { id } = created.json()
  t.same(only((await read(id, admin)).json()), full)
  const [row] = await sql`select ${sql(NAMES)} from organizations where id = ${id}`
  t.same(row, { ...full, seats: String(full.seats) }, 'in columns with the names of the fields')
  const none = await found(admin)
  t.same(only((await read(none, admin)).json()), defaults, 'fields without a value are absent or have their default')
  t.same(only((await patch(none, admin, { plan: 'pro', rate: 3, seats: 1 })).json()), { ...defaults, plan: 'pro', rate: 3, seats: 1 })
  t.same(
    only((await patch(none, admin, { plan: null, rate: null, name: 'B' })).json()), { ...defaults, seats: 1 },
    'null removes a value, and what is absent stays'
  )
})

t.test('19.2 whoever may change the organisation writes the fields for members, and others are ignored', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  await patch(id, admin, { plan: 'pro', note: 'x', rate: 2 })
  const billing = await createMember(id, 'billing')
  for (const by of [owner, billing]) {
    const wrong = { plan: 7, rate: 'many', note: { a: 1 } }
    const changed = await patch(id, by, { ...wrong, website: 'https://example.com/', open: true, colors: { accent: by.id } })
    t.equal(changed.statusCode, 200, changed.body)
    t.same(only(changed.json()), { plan: 'pro', rate: 2, website: 'https://example.com/', open: true, colors: { accent: by.id } })
    t.equal((await read(id, admin)).json().note, 'x')
  }
  const { updatedAt } = (await read(id, owner)).json()
  t.equal((await patch(id, owner, { plan: 'free' })).json().updatedAt, updatedAt, 'nothing has changed')
  t.same(only((await patch(id, owner, (await read(id, owner)).json())).json()), only((await read(id, owner)).json()))
  t.equal((await patch(id, await createMember(id), { website: 'https://example.org/' })).statusCode, 403)
  const payload = { name: 'Mine', slug: newSlug(), seats: 3, plan: 'pro', note: 7 }
  const founded = await inject('POST', '/api/organizations', { headers: owner.headers, payload })
  t.same(only(founded.json()), { ...defaults, seats: 3 })
})

t.test('19.2 members see the fields for members, and only admins of the service the others, by every path', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const set = await patch(id, admin, full)
  t.same(only(set.json()), full)
  const member = await createMember(id)
  const find = (list: Values[]) => list.find((one) => one['id'] === id)!
  const list = async (path: string, { headers }: LoggedIn) => find((await inject('GET', path, { headers })).json())
  const query = async (reader: LoggedIn) => {
    const text = `query ($id: ID!) { organization(id: $id) { ${NAMES.join(' ')} } }`
    const { data, errors } = await post(usher, { query: text, variables: { id } }, reader)
    t.equal(errors, undefined)
    return Object.fromEntries(Object.entries(data.organization).filter(([, value]) => value !== null))
  }
  const paths: Record<string, (reader: LoggedIn) => Promise<object>> = {
    'by id': async (reader) => (await read(id, reader)).json(),
    list: (reader) => list('/api/organizations', reader),
    change: async (reader) => (await patch(id, reader, { seats: full.seats })).json(),
    graphql: query,
    host: async (reader) => organizations.get(id, { actor: await actorOf(usher, reader) }),
    'list of the host': async (reader) => (await organizations.list({}, { actor: await actorOf(usher, reader) })).data.find((one) => one.id === id)!,
  }
  for (const [path, get] of Object.entries(paths)) {
    // At the same time, so that they share statements.
    const [ofAdmin, ofOwner] = await Promise.all([get(admin), get(owner)])
    t.same(only(ofAdmin), full, `admin, ${path}`)
    t.same(only(ofOwner), only(full, ofMembers), `owner, ${path}`)
  }
  t.same(only((await read(id, member)).json()), only(full, ofMembers))
  t.same(only(await list('/api/auth/organizations', owner)), only(full, ofMembers), 'own')
  const me = await post(usher, { query: `{ me { organizations { id ${NAMES.join(' ')} } } }` }, owner)
  t.same(only(find(me.data.me.organizations)), { ...full, note: null })
  t.equal((await read(id, await createVerified())).statusCode, 404)
})

t.test('19.2 a wrong value of a field is rejected with its path', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const wrong: [object, RegExp][] = [
    [{ seats: 0 }, /^seats must be/], [{ seats: 1.5 }, /^seats must be/], [{ website: 'no' }, /^website must/],
    [{ open: 'true' }, /^open must be/], [{ colors: [] }, /^colors must be/],
    [{ colors: { accent: 7 } }, /^colors\.accent must be/], [{ colors: { a: '\0' } }, /^colors/],
  ]
  for (const [payload, sentence] of wrong) {
    const founding = { name: 'A', slug: newSlug(), ...payload }
    for (const response of [
      await patch(id, owner, payload), await inject('POST', '/api/organizations', { headers: owner.headers, payload: founding }),
    ]) {
      t.equal(response.statusCode, 400, response.body)
      t.match(response.json().errors[0], sentence)
    }
    await t.rejects(organizations.update(id, payload), { statusCode: 400, errors: [sentence] })
  }
  t.same(only((await read(id, owner)).json()), defaults)
})

t.test('19.2 a change of a field changes the entity tag, and a stale one is refused', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const first = (await read(id, owner)).headers['etag'] as string
  const changed = await patch(id, owner, { seats: 2 }, { 'if-match': first })
  t.equal(changed.statusCode, 200)
  t.not(changed.headers['etag'], first)
  const stale = await patch(id, owner, { seats: 3 }, { 'if-match': first })
  t.equal(stale.statusCode, 412)
  t.equal((await read(id, owner)).json().seats, 2)
  const again = (tag: unknown, by: LoggedIn, path = pathOf(id)) =>
    inject('GET', path, { headers: { ...by.headers, 'if-none-match': String(tag) } })
  t.equal((await again(changed.headers['etag'], owner)).statusCode, 304)
  t.equal((await again(changed.headers['etag'], admin)).statusCode, 200, 'an admin sees more')
  t.equal((await patch(id, admin, { note: 'y' }, { 'if-match': changed.headers['etag'] })).statusCode, 200, 'of the same version')
  for (const path of ['/api/organizations', '/api/auth/organizations']) {
    const { etag } = (await inject('GET', path, { headers: owner.headers })).headers
    t.equal((await again(etag, owner, path)).statusCode, 304)
    await patch(id, owner, { colors: { accent: randomUUID() } })
    t.equal((await again(etag, owner, path)).statusCode, 200, path)
  }
})

t.test('19.2 a repeated founding with fields has one effect, and the same response', async (t) => {
  const owner = await createVerified()
  const payload = { name: 'Engines', slug: newSlug(), website: full.website, colors: full.colors, seats: 5 }
  const request = { headers: { ...owner.headers, 'idempotency-key': randomUUID() }, payload }
  const [first, second] = [
    await inject('POST', '/api/organizations', request), await inject('POST', '/api/organizations', request),
  ]
  t.equal(first.statusCode, 201, first.body)
  t.strictSame(second.json(), first.json())
  t.equal(second.headers['etag'], first.headers['etag'])
  t.equal(second.headers['idempotency-replayed'], 'true')
})

t.test('19.7 a host writes every field, and its hooks see and set them', async (t) => {
  const owner = await createVerified()
  const given = { name: 'Engines', slug: newSlug(), ownerId: owner.id, ...full }
  const created = await organizations.create(given)
  t.same(only(created), full)
  const changes: object = { seats: null, note: 'z' }
  const { seats, ...others } = full
  t.same(only(await organizations.update(created.id, changes)), { ...others, note: 'z' })
  t.same(only((await organizations.listOf(owner.id))[0]!).note, 'z')

  let seen: object | undefined
  hooks.beforeOrganizationCreate = (organization) => {
    seen = { ...organization }
    return { ...organization, plan: 'pro', note: 'by the hook' }
  }
  const payload = { name: 'Engines', slug: newSlug(), seats: 4, note: 'mine' }
  const { id, ...founded } = (await inject('POST', '/api/organizations', { headers: owner.headers, payload })).json()
  t.strictSame(seen, { name: 'Engines', slug: payload.slug, seats: 4 })
  t.match(founded, { seats: 4, plan: 'pro', note: undefined })
  t.equal((await read(id, admin)).json().note, 'by the hook')
  hooks.beforeOrganizationCreate = (organization) => ({ ...organization, seats: 0 })
  const rejected = await inject('POST', '/api/organizations', { headers: owner.headers, payload: { ...payload, slug: newSlug() } })
  t.equal(rejected.statusCode, 500, 'what a hook returns is validated')
  hooks.beforeOrganizationDelete = (organization) => { seen = { ...organization } }
  await organizations.delete(id, { actor: await actorOf(usher, owner) })
  t.match(seen, { id, seats: 4, plan: 'pro', note: 'by the hook' }, 'also those that the actor does not see')
})

t.test('19.2 an event of an organisation has none of the fields of the host, as that of a user', async (t) => {
  const events: object[] = []
  app.usher.on('organization.updated', async ({ data }) => { events.push(data) })
  const owner = await createVerified()
  const id = await found(owner)
  await t.resolves(patch(id, owner, { seats: 2 }))
  while (events.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  t.same(Object.keys(events[0]!).sort(), ['actorId', 'name', 'organizationId', 'slug'])
})

t.test('14 the API reference and the SDL describe the fields, without what only the service needs', async (t) => {
  const { components: { schemas } } = (await inject('GET', '/docs/json')).json()
  t.match(schemas.Organization.properties, {
    seats: { type: 'integer', minimum: 1 }, note: { description: 'Absent if it has no value, and for readers other than admins of the service' },
  })
  t.same(Object.keys(schemas.OwnOrganization.properties).filter((name) => NAMES.includes(name)), NAMES)
  t.match(schemas.CreateOrganization.properties.website.description, /^Only members who may change the organisation, and admins/)
  t.match(schemas.PatchOrganization.properties.plan.description, /^Only admins of the service may set it/)
  t.notMatch(JSON.stringify(schemas), /"(x-read|x-write|hostField|storedJson|maxBytes)":(?!{)/)
  const { data } = await post(usher, { query: '{ __type(name: "Organization") { fields { name type { name } } } }' }, admin)
  const shown: { name: string, type: object }[] = data.__type.fields
  const types = Object.fromEntries(shown.map(({ name, type }) => [name, type]))
  t.match(types, { website: { name: 'String' }, seats: { name: 'Int' }, colors: { name: 'JSON' }, rate: { name: 'Float' } })
})

t.test('15.2 the page of organisations has the fields that its readers see, with a control of their type', async (t) => {
  const { body } = await inject('GET', '/account/organizations')
  t.match(body, /<input id="change-website" name="website"[^>]* type="url"/)
  t.match(body, /<input id="change-seats" name="seats"[^>]* max="1000"/)
  t.match(body, /<input id="found-seats" name="seats"/)
  t.match(body, 'data-fact="plan"')
  t.notMatch(body, /"(change-|found-)(plan|note|colors)"/, 'but none that only admins write, and no JSON')
  t.notMatch(body, 'data-fact="note"')
})

t.test('18.6 an admin changes the fields of an organisation in the console', async (t) => {
  const { open, read: readPage, fill } = withConsole(usher)
  const cookie = await open(admin)
  const id = await found(await createVerified())
  await patch(id, admin, { ...full, open: true })
  const address = `/console/organizations/${id}`
  const { body } = await readPage(address, cookie)
  t.match(body, 'Internal note')
  t.match(body, 'value="careful"')
  const saved = await fill(address, address, { seats: '7', note: '', plan: 'free', open: 'true' }, cookie)
  t.equal(saved.statusCode, 303, saved.body)
  const { note, ...others } = full
  t.same(only((await read(id, admin)).json()), { ...others, open: true, seats: 7, plan: 'free' })
  const wrong = await fill(address, address, { seats: '0' }, cookie)
  t.equal(wrong.statusCode, 400)
  t.match(wrong.body, /name="seats"[^>]* value="0"/, 'what was typed is still there')
  t.equal((await read(id, admin)).json().seats, 7)
})

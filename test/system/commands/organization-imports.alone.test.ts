import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import { importOrganizations } from '../../../node/imports/import-organizations.ts'
import { readOrganizations } from '../../../schema/options/organizations.ts'
import { createUsher } from '../../helpers/app.ts'
import { importsOf, linesOf, SECRET } from '../../helpers/imports.ts'
import { nightly } from '../../helpers/nightly.ts'
import { nodeCommand } from '../../helpers/node.ts'
import { newSlug, organizationOptions, withOrganizations } from '../../helpers/organizations.ts'
import { startWithEvents } from '../../helpers/outbox-events.ts'
import { until } from '../../helpers/until.ts'

/** The option `organizations` of the app, and the setting of the commands. */
const given = { roles: { editor: [] }, maxPerUser: 3, maxMembers: 4 }

/** Starts an app with organisations, and returns what runs commands on its database. */
async function open (t: Test, organizations: object = given) {
  const { options, mails } = organizationOptions({ organizations, secret: SECRET })
  const usher = await createUsher(t, options)
  return {
    ...withOrganizations(t, usher, mails),
    ...await importsOf(t, usher, { ORGANIZATIONS: JSON.stringify(organizations) }),
    mails,
  }
}

interface Line { id?: string, name: string, slug: string, members: unknown }

const lineOf = (members: unknown, more: object = {}): Line => ({ name: 'Engines', slug: newSlug(), members, ...more })
const ownedBy = ({ id: userId }: { id: string }) => ({ userId, role: 'owner' })

t.test('19.8 organisations are imported with their members, by id or verified address, and work at once', async (t) => {
  const { usher: { inject }, createVerified, write, run, sql, mails } = await open(t)
  const [ada, bob, eve] = [await createVerified('Ada'), await createVerified('Bob'), await createVerified('Eve')]
  const id = randomUUID()
  const createdAt = '2019-03-04T05:06:07.123456+01:00'
  const path = write('organizations.ndjson', [
    lineOf([ownedBy(ada), { email: bob.email.toUpperCase(), role: 'editor' }, { userId: eve.id.toUpperCase(), email: null, role: 'member' }], {
      id: id.toUpperCase(), name: ' Analytical Engines ', slug: 'engines', createdAt,
    }),
    '',
    lineOf([ownedBy(bob)], { id: null, createdAt: null }),
  ])
  const checked = await run('organizations import', path, { 'dry-run': true })
  t.match(checked, { imported: 2, members: 4, rejected: 0, isFailure: false, rejectedFile: null, problems: [] })
  t.match(checked.text, /^2 organisations can be imported, with 4 members: /)
  t.equal((await sql`select 1 from organizations`).length, 0)

  const result = await run('organizations import', path)
  t.match(result, { imported: 2, members: 4, rejected: 0, resumed: 0, isFailure: false, finishedAt: null })
  t.match(result.text, /^2 organisations were imported, with 4 members: /)
  const get = async (path: string, { headers } = ada) => (await inject('GET', path, { headers })).json()
  t.match(await get(`/api/organizations/${id}`), {
    id, name: 'Analytical Engines', slug: 'engines', createdAt: '2019-03-04T04:06:07.123Z',
  })
  const members: { userId: string, role: string }[] = await get(`/api/organizations/${id}/members`)
  t.strictSame(members.map(({ userId, role }) => [userId, role]), [[ada.id, 'owner'], [bob.id, 'editor'], [eve.id, 'member']])
  t.strictSame((await get('/api/auth/organizations', bob)).map(({ role }: { role: string }) => role).sort(), ['editor', 'owner'])
  const renamed = await inject('PATCH', `/api/organizations/${id}`, { headers: ada.headers, payload: { name: 'Engines' } })
  t.equal(renamed.statusCode, 200, 'its owner manages it')
  t.strictSame(
    (await sql`select action, actor_id, user_id from audit where organization_id = ${id} order by id`).map((row) => Object.values(row)),
    [['organization.create', null, ada.id], ...[ada, bob, eve].map((user) => ['membership.add', null, user.id]),
      ['organization.update', ada.id, ada.id]]
  )
  t.equal(mails.size, 0)

  const again = await run('organizations import', path)
  t.match(again, { imported: 2, members: 4, finishedAt: Date }, 'a file that was imported is recognised')
  t.match(await run('organizations import', path, { again: true }), { imported: 0, rejected: 2 })
  t.equal((await sql`select 1 from memberships`).length, 4)
})

t.test('19.8 organisations are imported with the fields of the host, which are checked as in requests', async (t) => {
  const fields = Type.Object({
    plan: Type.Union([Type.Literal('free'), Type.Literal('pro')], { default: 'free' }),
    seats: Type.Optional(Type.Integer({ minimum: 1 })),
    tags: Type.Optional(Type.Object({ list: Type.Array(Type.String()) })),
  })
  const { usher, createVerified, write, run } = await open(t, { ...given, fields })
  const { inject, admin } = usher
  const owner = await createVerified()
  const values = { plan: 'pro', seats: 7, tags: { list: ['a "b"', 'é'] } }
  const [full, empty, wrong, unknown] = [
    lineOf([ownedBy(owner)], values), lineOf([ownedBy(owner)], { seats: null }), lineOf([ownedBy(owner)], { seats: 0 }),
    lineOf([ownedBy(owner)], { colour: 'red' }),
  ]
  const path = write('fields.ndjson', [full, empty, wrong, unknown])
  t.match(await run('organizations import', path, { 'dry-run': true }), {
    imported: 2, rejected: 2, problems: [{ line: 3, reason: /^seats / }, { line: 4, reason: /colour/ }],
  })
  t.match(await run('organizations import', path), { imported: 2, rejected: 2 })
  const found: Line[] = (await inject('GET', '/api/organizations', { headers: admin.headers })).json()
  const shown = ({ slug }: Line) => found.find((one) => one.slug === slug)
  t.match(shown(full), values)
  t.match(shown(empty), { plan: 'free', seats: undefined })

  // The settings of the command need not know the option of a host.
  const { write: writeFor, run: runWithout } = await importsOf(t, usher, { ORGANIZATIONS: 'true' })
  const other = lineOf([ownedBy(owner)], values)
  const otherPath = writeFor('columns.ndjson', [other, lineOf([ownedBy(owner)], { seats: 'many' })])
  t.match(await runWithout('organizations import', otherPath), { imported: 1, rejected: 1 })
  t.match((await inject('GET', `/api/organizations?q=${other.slug}`, { headers: admin.headers })).json(), [values])
})

t.test('19.8 the host gets an event of each organisation that is imported, and of each member', async (t) => {
  const { options, mails } = organizationOptions({ organizations: true, secret: SECRET })
  const { usher, events } = await startWithEvents(t, options, ['organization.created', 'membership.created'])
  const { createVerified } = withOrganizations(t, usher, mails)
  const { write, run } = await importsOf(t, usher, { ORGANIZATIONS: 'true' })
  const [ada, bob] = [await createVerified(), await createVerified()]
  const line = lineOf([ownedBy(ada), { userId: bob.id, role: 'member' }], { id: randomUUID() })
  await run('organizations import', write('organizations.ndjson', [line]))
  await until('the events', () => events.length >= 3)
  const { id: organizationId, name, slug } = line
  t.match(events.map(({ type, subject, data }) => ({ type, subject, data })), [
    { type: 'organization.created', subject: organizationId, data: { organizationId, name, slug, actorId: null } },
    ...[[ada.id, 'owner'], [bob.id, 'member']].map(([userId, role]) => ({
      type: 'membership.created', subject: organizationId, data: { organizationId, membershipId: String, userId, role, actorId: null },
    })),
  ])
})

t.test('19.8 a line with anything wrong is rejected with a sentence, and nothing of it is imported', async (t) => {
  const { usher, createVerified, createMember, found, write, run, sql } = await open(t)
  const [ada, bob] = [await createVerified('Ada'), await createVerified('Bob')]
  const busy = await createVerified('Busy')
  for (const name of ['One', 'Two']) await found(busy, name)
  const [unverified, disabled] = [await usher.createUser(), await createVerified()]
  await sql`update users set disabled = true where id = ${disabled.id}`
  const robot = (await usher.inject('POST', '/api/users', {
    headers: usher.admin.headers, payload: { name: 'Robot', email: 'robot@example.com', kind: 'service' },
  })).json()
  const existing = await found(ada)
  await createMember(existing)
  const [{ slug }] = await sql`select slug from organizations where id = ${existing}` as [{ slug: string }]
  const before = await sql`select * from organizations order by id`
  const [first, second] = [lineOf([ownedBy(ada)], { id: randomUUID() }), lineOf([ownedBy(busy)])]
  const member = (more: object) => [ownedBy(ada), { role: 'member', ...more }]
  const bad: [object | string, RegExp][] = [
    ['{', /^The line is not JSON$/],
    [{}, /^name is required; slug is required; members is required$/],
    [lineOf([]), /^members must not be empty$/],
    [lineOf('all'), /^members must be an array$/],
    [lineOf([1]), /^members\.0 must be an object$/],
    [lineOf([ownedBy(ada)], { owner: 1 }), /^owner is not a member of an organisation$/],
    [lineOf([{ ...ownedBy(ada), since: 1 }]), /^since is not a member of a member of an organisation$/],
    [lineOf([ownedBy(ada)], { name: 'See www.example.com' }), /^name must not have a link$/],
    [lineOf([ownedBy(ada)], { slug: 'Upper' }), /^slug must have lower-case letters/],
    [lineOf([ownedBy(ada)], { slug: 'login' }), /which is reserved$/],
    [lineOf([ownedBy(ada)], { id: 'x' }), /^id must be a UUID$/],
    [lineOf([ownedBy(ada)], { createdAt: '2019' }), /^createdAt must be a date and time of RFC 3339/],
    [lineOf(member({ userId: bob.id, role: 'boss' })), /^members\.1\.role must be one of owner, admin, editor, member$/],
    [lineOf(member({})), /^members\.1 must have either userId or email$/],
    [lineOf(member({ userId: bob.id, email: bob.email })), /^members\.1 must have either userId or email$/],
    [lineOf(member({ userId: randomUUID() })), /^members\.1\.userId is the id of no user$/],
    [lineOf(member({ userId: 'x' })), /^members\.1\.userId is the id of no user$/],
    [lineOf(member({ email: 'nobody@example.com' })), /^members\.1\.email is the address of no user$/],
    [lineOf(member({ email: unverified.email })), /^members\.1\.email is an address that its user has not verified: name the user by userId$/],
    [lineOf(member({ email: ada.email })), /^members\.1 is the same user as members\.0$/],
    [lineOf([{ userId: ada.id, role: 'admin' }]), /^members must have an owner who can log in$/],
    [lineOf([ownedBy(disabled), ownedBy(robot)]), /^members must have an owner who can log in$/],
    [lineOf(Array.from({ length: 5 }, () => ownedBy(ada))), /^members must be at most 4$/],
    [lineOf([ownedBy(busy)]), /^members\.0 is a user who is a member of 3 organisations, and may not be one of more$/],
    [lineOf([ownedBy(ada)], { slug }), /^slug is that of an organisation, or of an earlier line$/],
    [lineOf([ownedBy(ada)], { slug: first.slug }), /^slug is that of an organisation, or of an earlier line$/],
    [lineOf([ownedBy(ada)], { id: existing }), /^id is that of an organisation, or of an earlier line$/],
    [lineOf([ownedBy(ada)], { id: first.id }), /^id is that of an organisation, or of an earlier line$/],
  ]
  // An owner who can log in beside others, and one who is named by id without a verified address.
  const last = lineOf([ownedBy(disabled), ownedBy(bob), { userId: robot.id, role: 'member' }, { userId: unverified.id, role: 'member' }])
  const path = write('organizations.ndjson', [first, second, ...bad.map(([line]) => line), last])

  const checked = await run('organizations import', path, { 'dry-run': true })
  t.match(checked, { imported: 3, members: 6, rejected: bad.length, isFailure: true, rejectedFile: null })
  for (const [index, { line, reason }] of checked.problems.entries()) {
    t.equal(line, index + 3)
    t.match(reason, bad[index]![1])
  }
  t.strictSame(await sql`select * from organizations order by id`, before)

  const result = await run('organizations import', path)
  t.match(result, { imported: 3, members: 6, rejected: bad.length, isFailure: true })
  const rejected = linesOf(result.rejectedFile)
  for (const [index, [line, reason]] of bad.entries()) {
    t.match(rejected[index], { line: index + 3, reason })
    if (typeof line === 'object') t.strictSame(rejected[index].organization, line, 'as it was given')
  }
  const slugs = (await sql`select slug from organizations where id not in ${sql(before.map(({ id }) => id))}`).map(({ slug }) => slug)
  t.strictSame(slugs.sort(), [first, second, last].map(({ slug }) => slug).sort())
  t.strictSame(
    await sql`select * from organizations where id in ${sql(before.map(({ id }) => id))} order by id`, before, 'nothing else is changed'
  )
  await t.rejects(
    (await importsOf(t, usher)).run('organizations import', path), { message: /There are no organisations: set ORGANIZATIONS to true/ }
  )
})

t.test('19.8 an import that was interrupted continues where it was, without a duplicate or a gap', async (t) => {
  const { createVerified, write, sql, openDatabase } = await open(t)
  const owners = [await createVerified('Ada'), await createVerified('Bob')]
  const lines = Array.from({ length: 1500 }, (_, index) => index % 500 === 7
    ? `broken ${index}`
    : lineOf([ownedBy(owners[index % 2]!)], { slug: `org-${index === 1499 ? 1 : index}` }))
  const path = write('organizations.ndjson', lines)
  // Ada is an owner in 750 lines.
  const organizations = { ...readOrganizations(true, new Set())!, maxPerUser: 749 }
  const options = { db: await openDatabase(), organizations, path, rejectedPath: `${path}.rejected` }
  const expected = { imported: 1495, members: 1495, rejected: 5 }
  t.match(await importOrganizations({ ...options, dryRun: true }), {
    ...expected, problems: [{ line: 8 }, { line: 508 }, { line: 1008 }, { line: 1499, reason: /a member of 749/ }, { line: 1500, reason: /^slug/ }],
  })
  const interrupted = new Error('killed')
  await t.rejects(importOrganizations({ ...options, onProgress () { throw interrupted } }), interrupted)
  t.equal((await sql`select 1 from organizations`).length, 998)
  t.match(await importOrganizations(options), { ...expected, resumed: 998 })
  t.equal((await sql`select 1 from organizations`).length, 1495)
  t.equal((await sql`select 1 from memberships`).length, 1495)
  t.strictSame(linesOf(options.rejectedPath).map(({ line }) => line), [8, 508, 1008, 1499, 1500])
})

nightly('19.8 of 10,000 organisations, an import whose process is killed imports each once', async (t) => {
  const { usher, sql, folder, env, write, run } = await open(t, { maxPerUser: 1000 })
  const COUNT = 10_000
  const users = (await sql`
    insert into users (id, name, email, role, email_verified)
    select gen_random_uuid(), 'User ' || number, 'user' || number || '@example.com', 'user', true from generate_series(0, 39) as number
    returning id, email`) as unknown as { id: string, email: string }[]
  const path = write('organizations.ndjson', Array.from({ length: COUNT }, (_, index) => lineOf([
    ownedBy(users[index % 40]!), { email: users[(index + 1) % 40]!.email, role: 'member' }, { userId: users[(index + 2) % 40]!.id, role: 'admin' },
  ], { slug: `org-${index}` })))
  const imported = async (): Promise<number> => (await sql`select count(*)::integer as count from organizations`)[0]!['count']
  const command = nodeCommand([
    join(import.meta.dirname, '../../../node/server.ts'), 'organizations', 'import', path, '--schema', usher.options.schema!,
  ])
  const child = spawn(...command.command, { cwd: folder, env: { ...env, ...command.env }, stdio: 'ignore' })
  await until('some are imported', async () => await imported() > 0)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const before = await imported()
  t.ok(before < COUNT, `${before} before it was killed`)
  t.match(await run('organizations import', path), { imported: COUNT, members: 3 * COUNT, rejected: 0, resumed: before })
  t.equal(await imported(), COUNT)
  t.equal((await sql`select 1 from memberships`).length, 3 * COUNT)
  t.equal((await sql`select 1 from audit where action = 'organization.create'`).length, COUNT)
  t.equal((await sql`select 1 from audit where action = 'membership.add'`).length, 3 * COUNT)
})

import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'

const usher = await createUsher(t, {
  console: true,
  userFields: Type.Object({
    birthday: Type.Optional(Type.String({ format: 'date' })),
    paidUntil: Type.Optional(Type.String({ format: 'date-time' })),
    newsletter: Type.Optional(Type.Boolean()),
    look: Type.Optional(Type.String({ enum: ['light', 'as-the-system'] })),
  }),
})
const { inject, admin, createUser } = usher
const { open, read, send, fill } = withConsole(usher)
const cookie = await open(admin)

const stored = async (id: string) => (await inject('GET', `/api/users/${id}`, { headers: admin.headers })).json()

t.test('18.4 fields of the host are a date, a time of UTC, a switch and words, and what nobody has changed stays as it is', async (t) => {
  const { id } = await createUser()
  const page = `/console/users/${id}`
  const given = { birthday: '1912-06-23', paidUntil: '2027-01-02T03:04:05.678Z', newsletter: true, look: 'as-the-system' }
  await inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: given })
  const { body } = await read(page, cookie)
  t.match(body, /<input id="birthday"[^>]* type="date" value="1912-06-23"/)
  t.match(body, /<input id="paidUntil"[^>]* type="datetime-local" value="2027-01-02T03:04:05"/)
  t.match(body, /<input type="checkbox" role="switch" id="newsletter" name="newsletter" value="true" checked/)
  t.match(body, '<option value="as-the-system" selected>As the system</option>')
  t.match((await read('/console/users?columns=chosen&column.look=yes', cookie)).body, '<bdi>As the system</bdi>')
  const renamed = await fill(page, page, { name: 'Renamed', newsletter: 'true' }, cookie)
  t.equal(renamed.statusCode, 303)
  t.match(await stored(id), { ...given, name: 'Renamed' })
  // A browser leaves out seconds that are zero, and a box that is not checked.
  const changed = await fill(page, page, { birthday: '1912-06-24', paidUntil: '2028-05-06T07:08' }, cookie)
  t.equal(changed.statusCode, 303)
  t.match(await stored(id), { birthday: '1912-06-24', paidUntil: '2028-05-06T07:08:00.000Z', newsletter: false })
  await fill(page, page, { paidUntil: '' }, cookie)
  t.notOk('paidUntil' in await stored(id))
})

t.test('18.4 a switch that nobody has touched leaves a field without a value', async (t) => {
  const { id } = await createUser()
  const page = `/console/users/${id}`
  t.equal((await fill(page, page, { name: 'Renamed' }, cookie)).statusCode, 303)
  t.notOk('newsletter' in await stored(id))
})

t.test('18.4 a service is chosen first, and its key has the actions that are checked and an end', async (t) => {
  t.match((await read('/console/users/new', cookie)).body, /<legend>Kind<.*value="person" checked.*value="service".*id="name"/s)
  const created = await fill('/console/users/new', '/console/users', { name: 'Robot', email: 'robot@example.com', kind: 'service' }, cookie)
  const keys = `${`${created.headers.location}`.split('?')[0]}/keys`
  const { body } = await read(keys, cookie)
  t.match(body, /<option value="90" selected>90 days<.*<option value="">never<.*<legend>Posts<.*name="action\.posts:create"/s)
  t.notMatch(body, 'action.passkeys:add')
  const none = await send(keys, { keyName: 'None', permits: 'some', expires: '7' }, { cookie })
  t.equal(none.statusCode, 400)
  t.match(none.body, /Choose at least one action\..*value="None"/s)
  const shown = await send(keys, { keyName: 'Some', permits: 'some', expires: '7', 'action.posts:create': 'posts:create' }, { cookie })
  t.match(shown.body, /<code>usher_\w+<\/code><button[^>]* hidden data-copies="usher_/)
  await send(keys, { keyName: 'All', permits: 'all', expires: '', 'action.posts:create': 'posts:create' }, { cookie })
  const [all, some] = (await inject('GET', '/api/admin/keys', { headers: admin.headers })).json()
  t.match(all, { name: 'All', actions: null, expiresAt: null })
  t.match(some, { name: 'Some', actions: ['posts:create'] })
  const days = (Date.parse(some.expiresAt) - Date.now()) / 86_400_000
  t.ok(days > 6.9 && days <= 7, `${days} days`)
})

t.test('18.1 each row has a menu, whose questions are pages of their own', async (t) => {
  const { id, email } = await createUser({ name: 'Asked <b>' })
  const base = `/console/users/${id}`
  const row = (await read('/console/users?q=asked', cookie)).body
  t.match(row, new RegExp(`popovertarget="menu-${id}" aria-label="Actions: Asked &lt;b&gt;".*<a href="${base}/disable" data-asks>Disable</a>.*<a href="${base}/delete" class="danger" data-asks>`))
  t.notMatch((await read('/console/users', cookie)).body, `/console/users/${admin.id}/delete`, 'not for oneself')
  const { body } = await read(`${base}/delete`, cookie)
  t.match(body, `Type ${email} to confirm`)
  t.match(body, `data-expects="${email}"`)
  t.match(body, `href="${base}">Cancel</a>`)
  for (const question of ['/passkeys/unknown/remove', '/identities/unknown/remove', '/keys/unknown/delete']) {
    t.equal((await read(`${base}${question}`, cookie)).statusCode, 404, question)
  }
  t.equal((await read('/console/posts/unknown/delete', cookie)).statusCode, 404)
})

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { admin, eventNames, startWithEvents } from '../helpers/outbox-events.ts'
import { post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { upload } from '../helpers/uploads.ts'

t.test('12.5 a handler gets every event of every change, with its data and its actor', async (t) => {
  const { usher, events } = await startWithEvents(t)
  const { id: actorId, headers } = usher.admin
  const of = (subject: string) => events.filter((event) => event.subject === subject)
  await until('the first admin', () => of(actorId).length === 2)
  t.match(of(actorId), [
    {
      type: 'user.created',
      data: {
        userId: actorId,
        name: 'Admin',
        email: admin.email,
        role: 'admin',
        disabled: false,
        emailVerified: false,
        actorId: null,
      },
    },
    { type: 'session.started', data: { userId: actorId, actorId } },
  ], 'also those from before the app was ready')

  const user = await usher.createUser({ name: 'Ada' })
  const { id } = user
  await usher.inject('PATCH', `/api/users/${id}`, { headers, payload: { name: 'Ada L.' } })
  await usher.inject('PUT', '/api/auth/password', {
    headers: user.headers, payload: { currentPassword: user.password, password: 'violet engine notes' },
  })
  await usher.inject('POST', '/api/auth/logout', { headers: user.headers })
  await until('all events', () => of(id).length >= 5)
  t.match(of(id), [
    { type: 'user.created', data: { userId: id, name: 'Ada', email: user.email, role: 'user', actorId } },
    { type: 'session.started', data: { userId: id, actorId: id } },
    { type: 'user.updated', data: { userId: id, name: 'Ada L.', actorId } },
    { type: 'password.changed', data: { userId: id, actorId: id } },
    { type: 'session.ended', data: { userId: id, actorId: id } },
  ])
  for (const { id, timestamp } of events) {
    t.match(id, /^[0-9a-f-]{36}$/)
    t.ok(timestamp instanceof Date)
  }
  t.equal(new Set(events.map(({ id }) => id)).size, events.length)

  await t.test('12.5 posts and uploads, and what is deleted with its user', async (t) => {
    const user = await usher.createUser({ name: 'Bob' })
    const create = async (title: string) => (await post(
      usher, { mutation: `{ createPost(input: { title: "${title}", content: "Secret words" }) { id } }` }, user
    )).data.createPost.id
    const [first, second] = [await create('First'), await create('Second')]
    await post(usher, { mutation: `{ updatePost(id: "${first}", input: { title: "Changed" }) { id } }` }, usher.admin)
    await post(usher, { mutation: `{ deletePost(id: "${first}") }` }, user)
    const kept = await upload(usher, 'notes', 'a.txt', user.headers)
    const [, uploadId = ''] = /\/([0-9a-f-]{36})/.exec(kept.fileUrl)!
    await usher.inject('DELETE', `/api/users/${user.id}`, { headers })
    await until('all events', () =>
      of(first).length === 3 && of(second).length === 2 && of(uploadId).length === 2 && of(user.id).length === 4)
    t.match(of(first), [
      { type: 'post.created', data: { postId: first, authorId: user.id, title: 'First', actorId: user.id } },
      { type: 'post.updated', data: { postId: first, authorId: user.id, title: 'Changed', actorId } },
      { type: 'post.deleted', data: { postId: first, authorId: user.id, actorId: user.id } },
    ])
    t.match(
      of(second),
      [{ type: 'post.created' }, { type: 'post.deleted', data: { postId: second, authorId: user.id, actorId: null } }]
    )
    t.match(of(uploadId), [
      { type: 'upload.created', data: { uploadId, userId: user.id, filename: 'a.txt', size: 5, actorId: user.id } },
      { type: 'upload.deleted', data: { uploadId, userId: user.id, actorId: null } },
    ])
    t.match(of(user.id), [
      { type: 'user.created' },
      { type: 'session.started' },
      { type: 'session.ended', data: { actorId } },
      { type: 'user.deleted', data: { userId: user.id, actorId } },
    ])
    t.notMatch(JSON.stringify(events), 'Secret words')
  })

  await t.test('12.5 delivered events leave no rows', async (t) => {
    const sql = openSql(t, usher)
    await until('an empty outbox', async () => (await sql`select 1 from outbox`).length === 0)
  })
})

t.test('12.5 without consumers, no event is stored', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  await usher.createUser()
  t.same(await sql`select last_value::int, is_called from outbox_position_seq`, [{ last_value: 1, is_called: false }])
})

nightly('12.5 an event that fails delays only the later ones of its subject and consumer', async (t) => {
  const { usher: { app, admin, inject } } = await startWithEvents(t)
  const [seen, others]: [string[], string[]] = [[], []]
  let fails = true
  app.usher.on('user.updated', ({ data: { name } }, { attempt }) => {
    if (name.startsWith('Bad') && fails) throw new Error('not now')
    seen.push(name.startsWith('Bad') ? `${name}, ${attempt > 1}` : name)
  }, { name: 'failing' })
  app.usher.on('user.updated', ({ data: { name } }) => { others.push(name) }, { name: 'other' })
  const create = async () => (await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'A', email: `${randomUUID()}@example.com` } }
  )).json().id
  const [bad, good] = [await create(), await create()]
  const rename = (id: string, name: string) =>
    inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { name } })
  await until(
    'the consumers are known',
    async () => { await rename(good, 'Probe'); return seen.includes('Probe') && others.includes('Probe') },
    100
  )
  await rename(bad, 'Bad 1')
  await rename(bad, 'After 1')
  await rename(good, 'Good')
  await until(
    'the others', () => seen.includes('Good') && ['Bad 1', 'After 1', 'Good'].every((name) => others.includes(name))
  )
  t.same(seen.filter((name) => name !== 'Probe'), ['Good'])
  fails = false
  await until('all', () => seen.includes('After 1'))
  t.same(seen.filter((name) => name !== 'Probe'), ['Good', 'Bad 1, true', 'After 1'])
})

nightly('12.5 wrong arguments of on are rejected', async (t) => {
  const { usher: { app } } = await startWithEvents(t)
  const on = app.usher.on as (...args: unknown[]) => void
  t.throws(() => on('user.renamed', () => {}), 'usher: on: there is no event user.renamed')
  t.throws(() => on([], () => {}), 'at least one event')
  t.throws(() => on('user.created', 'handler'), 'usher: on needs a handler')
  t.throws(() => on('user.created', () => {}, { name: 'a b' }), 'usher: the name of a handler')
  t.throws(() => on(eventNames, () => {}), 'already: pass another name')
})

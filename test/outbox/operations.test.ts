import t from 'tap'
import type { Hooks } from '../../app.ts'
import { actorOf } from '../helpers/actor.ts'
import { startWithEvents } from '../helpers/outbox-events.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { upload } from '../helpers/uploads.ts'

const PASSWORD = 'violet engine notes'

t.test('12.5 operations of the host store their events, with the actor if there is one', async (t) => {
  const { usher, events } = await startWithEvents(t)
  const { users, sessions, posts, uploads } = usher.app.usher
  const of = (subject: string) =>
    events.filter((event) => event.subject === subject).map(({ type, data: { actorId } }) => [type, actorId])
  const admin = await actorOf(usher, usher.admin)

  const { id } = await users.create({ name: 'Ada', email: 'ada@example.com', password: PASSWORD })
  await users.update(id, { name: 'Ada L.' }, { actor: admin })
  await sessions.start(id)
  const [session] = await sessions.list(id)
  await sessions.end(session!.id)
  await sessions.start(id)
  await sessions.endAll(id, { actor: admin })
  const user = await usher.login({ email: 'ada@example.com', password: PASSWORD })
  const actor = await actorOf(usher, user)
  const post = await posts.create({ title: 'One', content: '', authorId: id })
  await posts.update(post.id, { title: 'Two' }, { actor })
  await posts.delete(post.id, { actor: admin })
  const [own, other] = [
    await upload(usher, 'Own', 'own.txt', user.headers), await upload(usher, 'Other', 'other.txt', user.headers),
  ]
  await uploads.delete(own.id, { actor })
  await uploads.delete(other.id)
  await users.delete(id)

  await until('all events', () =>
    of(id).length === 9 && of(post.id).length === 3 && of(own.id).length === 2 && of(other.id).length === 2)
  t.same(of(id), [
    ['user.created', null], ['user.updated', admin.id], ['session.started', id], ['session.ended', null], [
      'session.started', id,
    ],
    ['session.ended', admin.id], ['session.started', id], ['session.ended', null], ['user.deleted', null],
  ])
  t.same(of(post.id), [['post.created', null], ['post.updated', id], ['post.deleted', admin.id]])
  t.same(of(own.id), [['upload.created', id], ['upload.deleted', id]])
  t.same(of(other.id), [['upload.created', id], ['upload.deleted', null]])
  t.match(events.find(({ type }) => type === 'upload.deleted'), { data: { userId: id, filename: 'own.txt', size: 3 } })
})

nightly('12.5 changes with hooks in their transactions store their events and mails, except those that a hook rolls back', async (t) => {
  let rejects = false
  const hook = async (_: unknown, { sql }: { sql: (text: TemplateStringsArray) => Promise<unknown> }) => {
    await sql`select 1`
    if (rejects) throw Object.assign(new Error('not here'), { statusCode: 422 })
  }
  const hooks: Hooks = { onUserCreate: hook, onUserUpdate: hook, onUserDelete: hook, onPostCreate: hook }
  const inbox = createMailer()
  const { usher, events } = await startWithEvents(t, { hooks, mailer: inbox.mailer, signUp: true })
  const { users, posts } = usher.app.usher
  const { headers } = usher.admin
  const of = (subject: string) => events.filter((event) => event.subject === subject).map(({ type }) => type)
  const send = (path: string, payload: object) => usher.inject('POST', `/api/auth/${path}`, { payload })

  const ada = await users.create({ name: 'Ada', email: 'ada@example.com', password: PASSWORD })
  await send('sign-up', { name: 'Eve', email: 'eve@example.com', password: PASSWORD })
  const token = await inbox.token('eve@example.com')
  await send('password-reset', { email: ada.email })
  const resetToken = await inbox.token(ada.email)
  const former = await usher.createUser()

  // Each of them is rejected when it has changed everything, right before its commit.
  rejects = true
  const rejected = { statusCode: 422, message: 'not here' }
  await t.rejects(users.create({ name: 'Rejected', email: 'rejected@example.com' }), rejected)
  await t.rejects(users.update(ada.id, { name: 'Rejected', email: 'rejected@example.com' }), rejected)
  await t.rejects(users.update(ada.id, { name: 'Rejected', disabled: true }), rejected)
  await t.rejects(users.delete(former.id), rejected)
  await t.rejects(posts.create({ title: 'Rejected', content: '', authorId: ada.id }), rejected)
  t.equal(
    (await usher.inject('PATCH', `/api/users/${ada.id}`, { headers, payload: { name: 'Rejected' } })).statusCode, 422
  )
  t.equal((await send('sign-up/confirm', { token, password: PASSWORD })).statusCode, 422)
  t.equal(
    (await send('password-reset/confirm', { token: resetToken, password: 'quiet lantern river' })).statusCode, 422
  )
  rejects = false

  const eve = (await send('sign-up/confirm', { token, password: PASSWORD })).json()
  t.equal(
    (await send('password-reset/confirm', { token: resetToken, password: 'quiet lantern river' })).statusCode, 204
  )
  await users.update(ada.id, { name: 'Ada L.', email: 'countess@example.com' })
  const post = await posts.create({ title: 'Post', content: '', authorId: ada.id })
  await users.delete(former.id)

  const sql = openSql(t, usher)
  await until('an empty outbox', async () => (await sql`select 1 from outbox`).length === 0)
  t.same(of(usher.admin.id), ['user.created', 'session.started'], 'the first admin')
  t.same(of(eve.id), ['user.created'])
  t.same(of(ada.id), ['user.created', 'password.changed', 'user.updated', 'user.updated'])
  t.same(of(former.id), ['user.created', 'session.started', 'session.ended', 'user.deleted'])
  t.same(of(post.id), ['post.created'])
  t.equal(events.length, 12, 'no others')
  t.notMatch(JSON.stringify(events), /reject/i)
  t.match(
    inbox.mails.map(({ to }) => to).sort(),
    ['ada@example.com', 'ada@example.com', 'ada@example.com', 'eve@example.com'],
    'no mail of a change that was rolled back'
  )
})

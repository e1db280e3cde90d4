import { readdir } from 'node:fs/promises'
import t from 'tap'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { actorOf } from '../helpers/actor.ts'
import { upload } from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'

const UNKNOWN = '0198c0de-0000-7000-8000-000000000000'
const unauthenticated = { statusCode: 401, code: 'UNAUTHENTICATED' }
const forbidden = { statusCode: 403, code: 'FORBIDDEN' }
const invalid = { statusCode: 400, code: 'INVALID_INPUT' }

t.test('12.1 the host creates, reads, lists, changes and deletes posts', async (t) => {
  const usher = await sharedUsher()
  const { posts } = usher.app.usher
  const user = await usher.createUser()
  const actor = await actorOf(usher, user)
  const first = await posts.create(
    { title: ' One ', content: 'a', authorId: user.id.toUpperCase(), id: UNKNOWN } as never
  )
  t.match(first, { title: 'One', content: 'a', authorId: user.id, createdAt: Date })
  t.not(first.id, UNKNOWN)
  const second = await posts.create({ title: 'Two', content: '' }, { actor })
  t.equal(second.authorId, user.id)
  t.same(await posts.get(first.id), first)
  const page = await posts.list({ limit: 1, author: user.id })
  t.same(page.data, [second])
  const next = await posts.list({ limit: 1, author: user.id, after: page.page.next! })
  t.same(next, { data: [first], page: { next: null, limit: 1 } })
  t.match(await posts.update(first.id, { title: 'New' }), { title: 'New', content: 'a' })

  await t.rejects(posts.create({ title: 'x', content: '' }), { ...invalid, errors: ['authorId is required'] })
  await t.rejects(posts.create({ title: '', content: '', authorId: user.id }), invalid)
  for (const given of [undefined, null, 5, []]) await t.rejects(posts.create(given as never), invalid)
  await t.rejects(
    posts.create({ title: 'x', content: '', authorId: UNKNOWN }), { statusCode: 404, code: 'USER_NOT_FOUND' }
  )
  await t.rejects(posts.create({ title: 'x', content: '', authorId: usher.admin.id }, { actor }), forbidden)
  await t.rejects(posts.create({ title: 'x', content: '' }, { actor: null }), unauthenticated)
  const other = await posts.create({ title: 'x', content: '', authorId: usher.admin.id })
  await t.rejects(posts.delete(other.id, { actor }), forbidden)
  await t.rejects(posts.update(UNKNOWN, {}, { actor: null }), unauthenticated)
  for (const query of [{ limit: 101 }, { after: 'x' }, null]) await t.rejects(posts.list(query as never), invalid)
  await posts.delete(first.id, { actor })
  for (const id of [first.id, 'x', null]) {
    await t.rejects(posts.get(id as never), { statusCode: 404, code: 'POST_NOT_FOUND' })
  }
})

t.test('12.1 the host reads, lists and deletes uploads with their files', async (t) => {
  const usher = await createUsher(t)
  const { uploads } = usher.app.usher
  const user = await usher.createUser()
  const actor = await actorOf(usher, user)
  const [own, admins] = [await upload(usher, 'Own', 'own.txt', user.headers), await upload(usher, 'Admin', 'admin.txt')]
  t.match(await uploads.get(own.id), { ...own, userId: user.id, description: 'Something', createdAt: Date })
  const page = await uploads.list({ limit: 1 })
  t.match(page.data, [{ id: admins.id }])
  t.match(await uploads.list({ limit: 1, after: page.page.next! }), { data: [{ id: own.id }], page: { next: null } })
  t.match(await uploads.list({ user: user.id }), { data: [{ id: own.id }] })
  await t.rejects(uploads.delete(admins.id, { actor }), { statusCode: 403, code: 'FORBIDDEN' })
  await t.rejects(uploads.delete(own.id, { actor: null }), unauthenticated)
  await uploads.delete(own.id, { actor })
  t.equal((await usher.inject('GET', `/api/uploads/${own.id}`)).statusCode, 404)
  await until(
    'the file is removed', async () => (await readdir(`${usher.options.uploadsDir}/files`)).join() === admins.id
  )
  for (const id of [own.id, 'x', null]) {
    await t.rejects(uploads.delete(id as never), { statusCode: 404, code: 'UPLOAD_NOT_FOUND' })
  }
  await uploads.delete(admins.id)
  t.same((await uploads.list()).data, [])
})

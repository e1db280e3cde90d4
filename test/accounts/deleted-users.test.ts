import { randomUUID } from 'node:crypto'
import type { Sql } from 'postgres'
import t from 'tap'
import { createUsher, sharedUsher, type TestUsher } from '../helpers/app.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { leftovers, upload } from '../helpers/uploads.ts'

const BATCH = 1000

const insertPosts = (sql: Sql, authorId: string, count: number) => sql`
  insert into posts (id, author_id, title, content) select gen_random_uuid(), ${authorId}, 'Of many', '' from generate_series(1, ${count})`

const deleteUser = (usher: TestUsher, id: string) =>
  usher.inject('DELETE', `/api/users/${id}`, { headers: usher.admin.headers })

// Makes every deletion of posts fail until the returned function is called.
async function failDeletions (sql: Sql): Promise<() => Promise<unknown>> {
  await sql`create function fail() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$`
  await sql`create trigger fail before delete on posts for each statement execute function fail()`
  return () => sql`drop trigger fail on posts`
}

const usher = await sharedUsher()

t.test('2.5 what a deleted user had is invisible at once, long before it is deleted', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const [user, other] = [await usher.createUser(), await usher.createUser()]
  const first = await createPost(usher, other, 'Before')
  const { data: { post: { cursor } } } = await post(usher, { query: `{ post(id: "${first}") { cursor } }` })
  await insertPosts(sql, user.id, 3000)
  const hidden = await createPost(usher, user, 'Hidden')
  const { fileUrl } = await upload(usher, 'x', 'a', user.headers)
  const last = await createPost(usher, other, 'After')
  const allow = await failDeletions(sql)

  t.equal((await deleteUser(usher, user.id)).statusCode, 204)
  t.equal((await usher.inject('GET', `/api/users/${user.id}`)).statusCode, 404)
  t.equal((await usher.inject('GET', fileUrl)).statusCode, 404)
  t.equal((await usher.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
  const query =
    `{ post(id: "${hidden}") { id } posts(first: 10) { nodes { id } } own: posts(authorId: "${user.id}") { nodes { id } } }`
  t.same(await post(usher, { query }), {
    data: { post: null, posts: { nodes: [{ id: last }, { id: first }] }, own: { nodes: [] } },
  })
  for (const mutation of [
    `{ deletePost(id: "${hidden}") }`, `{ updatePost(id: "${hidden}", input: { title: "A" }) { id } }`,
  ]) {
    t.match(
      (await post(usher, { mutation }, usher.admin)).errors, [{ extensions: { code: 'POST_NOT_FOUND' } }], mutation
    )
  }
  const events = await openEvents(
    t, usher, { query: `?${new URLSearchParams({ query: `subscription { postCreated(after: "${cursor}") { id } }` })}` }
  )
  t.same(await events.answers(1), [{ data: { postCreated: { id: last } } }], 'replayed events skip them')
  events.abort()
  const again = await usher.inject(
    'POST', '/api/users', { headers: usher.admin.headers, payload: { name: 'Again', email: user.email } }
  )
  t.equal(again.statusCode, 201, 'the address is free again')
  t.same(
    await sql`select count(*)::int from posts where author_id = ${user.id}`, [{ count: 3001 }], 'nothing is deleted yet'
  )

  await allow()
  // This simulates the restart after a crash of the node that had begun the deletion.
  await createUsher(t, usher.options)
  await until('the rows are gone', async () => (await sql`select 1 from deleted_users`).length === 0)
  t.same(await sql`select count(*)::int from posts where author_id = ${user.id}`, [{ count: 0 }])
  await until('the file is gone', async () => (await leftovers(usher, sql)).files === 0)
})

nightly('2.5 a large amount is deleted in small batches, in the background', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  await insertPosts(sql, user.id, 20_000)
  await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description)
    select gen_random_uuid(), ${user.id}, '', '', 1, '', '' from generate_series(1, 2500)`
  await sql`insert into audit (id, action, user_id, address, user_agent)
    select gen_random_uuid(), 'login.failed', ${user.id}, '192.0.2.1', 'curl' from generate_series(1, 2500)`
  await sql`create table batches (name text, size integer)`
  await sql`create function count_batch() returns trigger language plpgsql set search_path from current as $$ begin
    insert into batches select tg_table_name, count(*) from old_rows; return null; end $$`
  await sql`create trigger counted after delete on posts referencing old table as old_rows for each statement execute function count_batch()`
  await sql`create trigger counted after update on uploads referencing old table as old_rows for each statement execute function count_batch()`
  await sql`create trigger counted after update on audit referencing old table as old_rows for each statement execute function count_batch()`

  t.equal((await deleteUser(usher, user.id)).statusCode, 204)
  await until('all is gone', async () => (await sql`select 1 from deleted_users`).length === 0)
  t.same(
    await sql`select name, max(size)::int, sum(size)::int from batches where size > 0 group by name order by name`,
    [
      { name: 'audit', max: BATCH, sum: 2501 },
      { name: 'posts', max: BATCH, sum: 20_000 },
      { name: 'uploads', max: BATCH, sum: 2500 },
    ]
  )
  t.same(
    await sql`select action from audit where user_id = ${user.id} and address <> '' order by id`,
    [{ action: 'user.create' }, { action: 'user.delete' }]
  )
})

nightly('2.5 users who are deleted manually are cleaned up too, many at a time', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), '', 'u' || i, 'user' from generate_series(1, 250) i`
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), id, '', '' from users`
  await sql`delete from users where role = 'user'`
  t.equal((await deleteUser(usher, (await usher.createUser()).id)).statusCode, 204)
  await until('all is gone', async () => (await sql`select 1 from deleted_users`).length === 0)
  t.same(await sql`select count(*)::int from posts`, [{ count: 1 }])
})

t.test('2.5 deleting a user who is not an admin does not wait for locks on admins', async (t) => {
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  await sql.begin(async (trx) => {
    await trx`select 1 from users where role = 'admin' for update`
    t.equal((await deleteUser(usher, user.id)).statusCode, 204)
  })
})

t.test('7.6 a post whose author is being deleted gets OVERLOADED, and posts of others do not wait', async (t) => {
  const sql = openSql(t, usher)
  const [author, other] = [await usher.createUser(), await usher.createUser()]
  const deleteAuthor = (end: () => void) => sql.begin(async (trx) => {
    await trx`delete from users where id = ${author.id}`
    const [refused, created] = await Promise.allSettled([createPost(usher, author), createPost(usher, other)])
    t.match(refused, { status: 'rejected', reason: { message: /OVERLOADED/ } })
    t.match(created, { status: 'fulfilled' })
    end()
  })
  const rollback = new Error('rollback')
  await t.rejects(deleteAuthor(() => { throw rollback }), rollback)
  t.ok(await createPost(usher, author), 'a deletion that was rolled back is none')
  await deleteAuthor(() => {})
  await t.rejects(createPost(usher, author), { message: /INVALID_TOKEN|USER_NOT_FOUND/ })
})

t.test('5.5 the database accepts no upload of a user who does not exist', async (t) => {
  const sql = openSql(t, usher)
  const insert = (userId: string | null) =>
    sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description)
    values (gen_random_uuid(), ${userId}, '', '', 1, '', '')`
  await t.rejects(insert(randomUUID()), { code: '23503', constraint_name: 'uploads_user_id_fkey' })
  await t.resolves(insert(null))
})

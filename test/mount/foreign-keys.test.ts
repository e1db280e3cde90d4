import postgres from 'postgres'
import t from 'tap'
import { migrate, type UsherOptions } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { until } from '../helpers/until.ts'

const kinds = ['no action', 'restrict', 'no action deferrable initially deferred'] as const

t.test('12.7 a table of the host refers to users: a delete that violates the foreign key is 409 and changes nothing', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const schema = uniqueSchema(t.name)
  await migrate({ databaseUrl, schema })
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  const host = `${schema.slice(0, 40)}_host`
  await sql.unsafe(`create schema ${host}`)
  t.teardown(() => sql.unsafe(`drop schema ${host} cascade`))
  const deletions: string[] = []
  const hooks: UsherOptions['hooks'] = {
    onUserDelete: async (user, { sql }) => { await sql`select 1`; deletions.push(user.id) },
  }
  const usher = await createUsher(t, { schema, databaseUrl, hooks })
  const { users } = usher.app.usher
  for (const [index, kind] of kinds.entries()) {
    const [deferrable] = kind.match(/deferrable.*/) ?? ['']
    const table = `${host}.table_${index}`
    await sql.unsafe(
      `create table ${table} (user_id uuid references ${schema}.users (id) on delete ${kind.replace(deferrable, '')} ${deferrable})`
    )
    const user = await usher.createUser()
    const postId = await createPost(usher, user)
    await sql.unsafe(`insert into ${table} values ('${user.id}')`)
    for (const { headers } of [user, usher.admin]) {
      const response = await usher.inject('DELETE', `/api/users/${user.id}`, { headers })
      t.equal(response.statusCode, 409, kind)
      t.same(
        response.json(), { error: 'The user cannot be deleted, because other data refers to it', code: 'USER_IN_USE' }
      )
    }
    await t.rejects(users.delete(user.id), { statusCode: 409, code: 'USER_IN_USE' }, `${kind}, by the host`)
    t.ok(deletions.includes(user.id), 'the hook has run, in the transaction that was rolled back')
    t.equal(
      (await usher.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200, 'the session is live'
    )
    t.equal((await usher.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })).statusCode, 200)
    t.same((await post(usher, { query: `{ post(id: "${postId}") { author { id } } }` })).data, {
      post: { author: { id: user.id } },
    })
    const log = await usher.inject('GET', '/api/audit', { headers: usher.admin.headers })
    t.notOk(log.json().some(({ action, userId }: { action: string, userId: string }) => action === 'user.delete' &&
      userId === user.id), 'no entry in the account log')
    await sql.unsafe(`delete from ${table}`)
    t.equal(
      (await usher.inject('DELETE', `/api/users/${user.id}`, { headers: usher.admin.headers })).statusCode, 204, kind
    )
    t.equal((await usher.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
  }

  await sql.unsafe(`create table ${host}.cascading (user_id uuid references ${schema}.users (id) on delete cascade)`)
  await sql.unsafe(`create table ${host}.nulled (user_id uuid references ${schema}.users (id) on delete set null)`)
  const user = await usher.createUser()
  const postId = await createPost(usher, user)
  for (const table of ['cascading', 'nulled']) await sql.unsafe(`insert into ${host}.${table} values ('${user.id}')`)
  t.equal((await usher.inject('DELETE', `/api/users/${user.id}`, { headers: user.headers })).statusCode, 204)
  t.same([...await sql.unsafe(`select * from ${host}.cascading`)], [])
  t.same([...await sql.unsafe(`select * from ${host}.nulled`)], [{ user_id: null }])
  t.same((await post(usher, { query: `{ post(id: "${postId}") { id } }` })).data, { post: null })
  await until('the removal of the posts', async () =>
    (await sql.unsafe(`select from ${schema}.posts where id = '${postId}'`)).length === 0)
})

import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import type { TransactionSql } from 'postgres'
import t from 'tap'
import { rotateSigningKey } from '../../db/access/signing-keys.ts'
import { actorOf } from '../helpers/actor.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { openConnection } from '../helpers/connection.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { whileTemporary } from '../helpers/temporary-errors.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, post as postForm } from '../helpers/uploads.ts'

// One connection for all writes outside transactions, so that they wait behind one that waits for a lock.
const usher = await createUsher(t, { poolSize: 2 })
const { admin, inject, createUser, login } = usher
const sql = openSql(t, usher)

/** What a user writes, on behalf of a session that ends meanwhile. Returns the code of the error. */
type Write = (user: LoggedIn, postId: string, uploadId: string) => Promise<string>

const key = () => ({ 'idempotency-key': `"${randomUUID()}"` })
const graphql = async ({ headers }: LoggedIn, query: string, more: object = {}): Promise<string> =>
  (await inject(
    'POST', '/graphql', { headers: { ...headers, ...more }, payload: { query } }
  )).json().errors?.[0].extensions.code
const rest = async (
  method: 'POST' | 'PUT', path: string, { headers }: LoggedIn, payload: object, more: object = {}
): Promise<string> =>
  (await inject(method, path, { headers: { ...headers, ...more }, payload })).json().code
const upload = ({ headers }: LoggedIn, more: object = {}) =>
  postForm(usher, [fieldPart('description', 'Something'), filePart('Hello')], { headers: { ...headers, ...more } })
const newUser = { name: 'New', email: 'new@example.com' }

const writes: Record<string, Write> = {
  'creating a post': (user) => graphql(user, 'mutation { createPost(input: { title: "New", content: "" }) { id } }'),
  'creating a post with a key': (user) =>
    graphql(user, 'mutation { createPost(input: { title: "New", content: "" }) { id } }', key()),
  'changing a post': (user, id) =>
    graphql(user, `mutation { updatePost(id: "${id}", input: { title: "New" }) { id } }`),
  'changing a post with a key': (user, id) =>
    graphql(user, `mutation { updatePost(id: "${id}", input: { title: "New" }) { id } }`, key()),
  'deleting a post': (user, id) => graphql(user, `mutation { deletePost(id: "${id}") }`),
  'deleting a post with a key': (user, id) => graphql(user, `mutation { deletePost(id: "${id}") }`, key()),
  'creating a user': (user) => rest('POST', '/api/users', user, newUser),
  'creating a user with a key': (user) => rest('POST', '/api/users', user, newUser, key()),
  'replacing a user': (user) => rest('PUT', `/api/users/${user.id}`, user, { name: 'New', email: user.email }),
  'an upload': async (user) => (await upload(user)).json().code,
  'an upload with a key': async (user) => (await upload(user, key())).json().code,
  'an upload of a user with others': async (user) => (await upload(user)).json().code,
  'an upload of a user with others with a key': async (user) => (await upload(user, key())).json().code,
  'deleting an upload': async (user, _, id) => {
    const actor = await actorOf(usher, user)
    return usher.app.usher.uploads.delete(id, { actor }).then(() => 'none', ({ code }) => code)
  },
}

/** How another transaction makes these writes wait in the middle of their statements. */
const locks: Record<
  string, (trx: TransactionSql, of: { user: LoggedIn, postId: string, uploadId: string }) => Promise<unknown>
> = {
  'creating a post': (trx) =>
    trx`select pg_advisory_xact_lock(hashtextextended(${`usher posts of ${usher.options.schema}`}, 0))`,
  'changing a post': (trx, { postId: id }) => trx`select from posts where id = ${id} for update`,
  'deleting a post': (trx, { postId: id }) => trx`select from posts where id = ${id} for update`,
  'creating a user': (trx) =>
    trx`insert into users (id, name, email, role) values (${randomUUID()}, 'Other', ${newUser.email}, 'user')`,
  'an upload': (trx, { user }) => trx`select from users where id = ${user.id} for update`,
  'an upload of a user with others': (trx, { user }) =>
    trx`select from upload_usage where user_id = ${user.id} for update`,
  'deleting an upload': (trx, { uploadId: id }) => trx`select from uploads where id = ${id} for update`,
}

const waiting = async (): Promise<number> =>
  ((await usher.app.usher.metrics()).find(({ name }) =>
    name === 'usher_database_statements_waiting')!.samples[0] as { value: number }).value

const codeOf = (write: () => Promise<string>): Promise<string> => whileTemporary(write, (code) => code)

/** Returns everything that the writes could change, except for a post. */
const stateBut = async (locked = '') => [
  await sql`select * from users order by id`, await sql`select * from posts where id::text <> ${locked} order by id`,
  await sql`select * from uploads order by id`, await sql`select * from idempotency_keys`,
]

nightly('1.12 a write that waits in the database when its session ends is rejected, and nothing is written', async (t) => {
  const locked = await createPost(usher, admin)
  for (const [what, write] of Object.entries(writes)) {
    await t.test(`1.12 ${what}`, async (t) => {
      const created = await createUser({ role: 'admin' })
      const user = await login(created)
      const postId = await createPost(usher, user)
      const uploadId = (await upload(user)).json().id
      const before = await stateBut(locked)
      const { changed, written } = await sql.begin(async (trx) => {
        await trx`select from posts where id = ${locked} for update`
        const changed = post(
          usher, { query: `mutation { updatePost(id: "${locked}", input: { content: "Changed" }) { id } }` }, admin
        )
        await untilBlocked(sql, usher)
        const written = codeOf(() => write(user, postId, uploadId))
        await until('the write waits', async () => await waiting() >= 2)
        // Not by this node, which would know of it.
        await trx`delete from sessions where id = ${decodeJwt(user.token).sid as string}`
        return { changed, written }
      })
      t.equal(await written, 'INVALID_TOKEN')
      await changed
      t.same(await stateBut(locked), before)
    })
  }
})

t.test('1.12 a write that waits for a lock when its session ends is rejected, and nothing is written', async (t) => {
  for (const [what, lock] of Object.entries(locks)) {
    for (const name of [what, `${what} with a key`].filter((name) => name in writes)) {
      await t.test(`1.12 ${name}`, async (t) => {
        const user = await login(await createUser({ role: 'admin' }))
        const postId = await createPost(usher, user)
        const uploadId = (await upload(user)).json().id
        const before = await stateBut()
        const rolledBack = new Error('Rolled back')
        let written: Promise<string> | undefined
        await t.rejects(sql.begin(async (trx) => {
          await lock(trx, { user, postId, uploadId })
          written = codeOf(() => writes[name]!(user, postId, uploadId))
          await untilBlocked(sql, usher)
          await sql`delete from sessions where id = ${decodeJwt(user.token).sid as string}`
          throw rolledBack
        }), rolledBack)
        t.equal(await written, 'INVALID_TOKEN')
        t.same(await stateBut(), before)
      })
    }
  }
})

nightly('1.12 a write that waits for a lock when its token expires is rejected, and nothing is written', async (t) => {
  for (const name of ['creating a post', 'changing a post', 'an upload']) {
    // On a busy machine, a token may expire before its write waits.
    for (let accessTokenSeconds = 2; ; accessTokenSeconds *= 2) {
      const short = await createUsher(t, { ...usher.options, accessTokenSeconds })
      const created = await createUser({ role: 'admin' })
      const postId = await createPost(usher, created)
      const user = await short.login(created)
      const before = await stateBut()
      const { written, isEarly } = await sql.begin(async (trx) => {
        await locks[name]!(trx, { user, postId, uploadId: '' })
        const written = writes[name]!(user, postId, '')
        const isEarly = await Promise.race([untilBlocked(sql, usher), written.then(() => true)])
        const { exp } = decodeJwt(user.token)
        await until(
          'the token has expired',
          async () => (await sql`select where clock_timestamp() > to_timestamp(${exp!})`).length > 0,
          20
        )
        return { written: [written], isEarly }
      })
      t.equal(await written[0], 'INVALID_TOKEN', name)
      t.same(await stateBut(), before)
      if (!isEarly) break
    }
  }
})

t.test('1.12 of writes that share a statement, only those are rejected whose token is invalid when they are made', async (t) => {
  const users = [await createUser(), await createUser(), await createUser()]
  const [, ended] = users as [LoggedIn, LoggedIn, LoggedIn]
  const codes = await sql.begin(async (trx) => {
    await trx`select pg_advisory_xact_lock(hashtextextended(${`usher posts of ${usher.options.schema}`}, 0))`
    const mutation = 'mutation { createPost(input: { title: "Shared", content: "" }) { id } }'
    const written = users.map((user) => codeOf(() => graphql(user, mutation)))
    await untilBlocked(sql, usher)
    await sql`delete from sessions where id = ${decodeJwt(ended.token).sid as string}`
    return { written }
  })
  t.same(await Promise.all(codes.written), [undefined, 'INVALID_TOKEN', undefined])
  t.equal((await sql`select from posts where title = 'Shared'`).length, 2)
})

t.test('1.12 a write that waits for a lock when its signing key is revoked is rejected, and nothing is written', async (t) => {
  const { db } = await openConnection(t, { schema: usher.options.schema! })
  const user = await createUser()
  const before = await stateBut()
  const { written } = await sql.begin(async (trx) => {
    await locks['creating a post']!(trx, { user, postId: '', uploadId: '' })
    const written = codeOf(() => writes['creating a post']!(user, '', ''))
    await untilBlocked(sql, usher)
    await rotateSigningKey(db, { tokenSeconds: 900, leadSeconds: 0, revoke: true })
    return { written }
  })
  t.equal(await written, 'INVALID_TOKEN')
  t.same(await stateBut(), before)
  // The following tests log in again.
  Object.assign(admin, await login(admin))
})

t.test('1.12 the same holds for a write in a transaction with a hook of the host', async (t) => {
  const hooked = await createUsher(t, { ...usher.options, hooks: { onPostCreate: async () => {} } })
  const user = await login(await createUser({ role: 'admin' }))
  const before = await stateBut()
  let written: Promise<string> | undefined
  await sql.begin(async (trx) => {
    await locks['creating a post']!(trx, { user, postId: '', uploadId: '' })
    written = codeOf(async () => {
      const { errors } = await post(
        hooked, { query: 'mutation { createPost(input: { title: "New", content: "" }) { id } }' }, user
      )
      return errors?.[0]?.extensions.code as string
    })
    await untilBlocked(sql, usher)
    await sql`delete from sessions where id = ${decodeJwt(user.token).sid as string}`
  })
  t.equal(await written, 'INVALID_TOKEN')
  t.same(await stateBut(), before)
})

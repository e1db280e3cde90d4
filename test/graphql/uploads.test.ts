import postgres from 'postgres'
import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { post } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { upload } from '../helpers/uploads.ts'

const UNKNOWN = '018f0000-0000-7000-8000-000000000000'
const usher = await sharedUsher()
const { admin, inject } = usher
const [ada, bob] = [await usher.createUser({ name: 'Ada' }), await usher.createUser({ name: 'Bob' })]
const keep = async (name: string, by = ada) => (await upload(usher, name, name, by.headers)).id
const ask = (query: string, by?: LoggedIn, variables = {}) => post(usher, { query, variables }, by)
const record = async (id: string, by = ada) =>
  inject('GET', `/api/uploads/${id}/record`, { headers: by.headers })

t.test('13.1 User.uploads is a connection of the newest uploads, for the user and admins', async (t) => {
  const ids = [await keep('a.txt'), await keep('b.txt'), await keep('c.txt')].reverse()
  const query = `query ($id: ID!, $after: String) { user(id: $id) { uploads(first: 2, after: $after) {
    nodes { id userId filename mediaType size sha256 description visibility createdAt fileUrl etag }
    edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }`
  for (const reader of [ada, admin]) {
    const { user: { uploads } } = (await ask(query, reader, { id: ada.id })).data
    t.same(uploads.nodes.map(({ id }: { id: string }) => id), ids.slice(0, 2))
    t.match(uploads.pageInfo, { hasNextPage: true, hasPreviousPage: false, endCursor: uploads.edges[1].cursor })
    const { etag, ...rest } = uploads.nodes[0]
    const rested = await record(ids[0]!)
    t.same(rest, rested.json())
    t.equal(etag, rested.headers.etag)
    const { endCursor: after } = uploads.pageInfo
    const next = (await ask(query, reader, { id: ada.id, after })).data.user.uploads
    t.same(next.nodes.map(({ id }: { id: string }) => id), ids.slice(2))
    t.match(next.pageInfo, { hasNextPage: false, hasPreviousPage: true })
  }
  const denied = async (by?: LoggedIn) => (await ask('query ($id: ID!) { user(id: $id) { uploads { nodes { id } } } }', by, { id: ada.id })).errors
  t.match(await denied(bob), [{ extensions: { code: 'FORBIDDEN' } }])
  t.match(await denied(), [{ extensions: { code: 'UNAUTHENTICATED' } }])
  const bad = async (args: string) => (await ask(`{ me { uploads(${args}) { nodes { id } } } }`, ada)).errors
  t.match(await bad('first: 0'), [{ extensions: { code: 'INVALID_INPUT' } }])
  t.match(await bad('first: 101'), [{ extensions: { code: 'INVALID_INPUT' } }])
  t.match(await bad('after: "x"'), [{ extensions: { code: 'INVALID_INPUT' } }])
})

t.test('13.1 upload is null for one that does not exist, and for a private one of somebody else', async (t) => {
  const id = await keep('public.txt')
  const read = async (id: string, by?: LoggedIn) => ask('query ($id: ID!) { upload(id: $id) { filename } }', by, { id })
  t.same(await read(id), { data: { upload: { filename: 'public.txt' } } })
  for (const unknown of [UNKNOWN, 'no-id']) t.same(await read(unknown, ada), { data: { upload: null } })
  await inject('PATCH', `/api/uploads/${id}`, { headers: ada.headers, payload: { visibility: 'private' } })
  for (const reader of [bob, undefined]) t.same(await read(id, reader), { data: { upload: null } })
  for (const reader of [ada, admin]) t.same(await read(id, reader), { data: { upload: { filename: 'public.txt' } } })
})

t.test('13.1 updateUpload changes what is given, with ifMatch, and once for each idempotency key', async (t) => {
  const id = await keep('before.txt')
  const mutation = `mutation ($id: ID!, $input: UpdateUploadInput!, $ifMatch: String) {
    updateUpload(id: $id, input: $input, ifMatch: $ifMatch) { filename description visibility etag } }`
  type Given = { ifMatch?: string, by?: LoggedIn, headers?: object }
  const update = (input: object, { ifMatch, by = ada, headers = {} }: Given = {}) =>
    inject('POST', '/graphql', {
      headers: { ...by.headers, ...headers }, payload: { query: mutation, variables: { id, input, ifMatch } },
    })
  const { etag } = (await record(id)).headers
  const first = (await update({ filename: '/etc/after.txt', description: null }, { ifMatch: String(etag) })).json()
  t.match(first, { data: { updateUpload: { filename: 'after.txt', description: 'Something', visibility: 'public' } } })
  t.match((await update({ filename: 'x' }, { ifMatch: String(etag) })).json(), {
    errors: [{ extensions: { code: 'PRECONDITION_FAILED' } }],
  })
  t.match((await update({ description: 'x' }, { by: bob })).json(), { errors: [{ extensions: { code: 'FORBIDDEN' } }] })
  t.match((await update({ filename: 'a\nb' })).json(), {
    errors: [{ extensions: { errors: ['filename must not contain control characters'] } }],
  })
  const headers = { 'idempotency-key': 'update-1' }
  const written = await update({ description: 'Once', visibility: 'private' }, { headers })
  t.match(written.json(), { data: { updateUpload: { description: 'Once', visibility: 'private' } } })
  t.match((await update({ description: 'Later' })).json(), { data: { updateUpload: { description: 'Later' } } })
  const repeated = await update({ description: 'Once', visibility: 'private' }, { headers })
  t.same(repeated.json(), written.json())
  t.equal(repeated.headers['idempotency-replayed'], 'true')
  t.equal((await record(id)).json().description, 'Later')
  t.match((await update({ description: 'x' }, { by: bob })).json(), {
    errors: [{ extensions: { code: 'UPLOAD_NOT_FOUND' } }],
  }, 'a private upload does not exist for others')
})

t.test('13.1 deleteUpload deletes an upload, with ifMatch, and once for each idempotency key', async (t) => {
  const id = await keep('gone.txt')
  const remove = (ifMatch?: string, by = ada) => inject('POST', '/graphql', {
    headers: { ...by.headers, 'idempotency-key': 'delete-1' },
    payload: { query: 'mutation ($id: ID!, $m: String) { deleteUpload(id: $id, ifMatch: $m) }', variables: { id, m: ifMatch } },
  })
  t.match((await remove('"1"')).json(), { errors: [{ extensions: { code: 'PRECONDITION_FAILED' } }] })
  t.match((await remove(undefined, bob)).json(), { errors: [{ extensions: { code: 'FORBIDDEN' } }] })
  t.same((await remove()).json(), { data: { deleteUpload: id } })
  const repeated = await remove()
  t.same(repeated.json(), { data: { deleteUpload: id } })
  t.equal(repeated.headers['idempotency-replayed'], 'true')
  t.equal((await record(id)).statusCode, 404)
})

t.test('7.8 fifty users with their uploads are two statements', async (t) => {
  const statements: string[] = []
  const client = postgres(await testDatabaseUrl(), {
    max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) },
  })
  t.teardown(() => client.end())
  const other = await createUsher(t, { sql: client, databaseUrl: undefined })
  const sql = postgres(await testDatabaseUrl(), { max: 1, connection: { search_path: other.options.schema! } })
  t.teardown(() => sql.end())
  await sql`insert into users (id, name, email, role)
    select gen_random_uuid(), 'U', 'u' || n || '@example.com', 'user' from generate_series(1, 50) n`
  await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description)
    select gen_random_uuid(), id, 'f', 'text/plain', 1, 'x', 'd' from users, generate_series(1, 3)`
  statements.length = 0
  const query = '{ users(first: 50) { nodes { uploads(first: 20) { nodes { id } } } } }'
  const { data, errors } = await post(other, { query }, other.admin)
  t.same(errors, undefined)
  const counts = data.users.nodes.map(({ uploads }: { uploads: { nodes: [] } }) => uploads.nodes.length)
  t.same(counts, Array(50).fill(3))
  t.equal(statements.filter((text) => /"(users|uploads)"/.test(text)).length, 2)
})

t.test('7.8 the cost of a document counts the uploads of each user', async (t) => {
  const { errors } = await ask('{ users(first: 100) { nodes { uploads(first: 100) { nodes { id filename sha256 } } } } }', admin)
  t.match(errors, [{ extensions: { code: 'OPERATION_TOO_COSTLY' } }])
})

t.test('13.1 lists of uploads use an index', async (t) => {
  const sql = openSql(t, usher)
  await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description)
    select gen_random_uuid(), case when n % 2 = 0 then ${ada.id}::uuid else ${bob.id}::uuid end, 'f', 'text/plain', 1, 'x', 'd'
    from generate_series(1, 5000) n`
  await sql`analyze uploads`
  const plan = async (user: boolean) => (await sql.unsafe(`explain (costs off) select * from uploads
    where user_id is not null and user_id not in (select user_id from deleted_users)
    ${user ? `and user_id = '${ada.id}'` : ''} and id < 'ffffffff-ffff-ffff-ffff-ffffffffffff' order by id desc limit 101`))
    .map((row) => row['QUERY PLAN']).join('\n')
  t.match(await plan(true), /Index Scan Backward using uploads_user_list/)
  t.match(await plan(false), /Index Scan Backward using uploads_pkey/)
  for (const text of [await plan(true), await plan(false)]) t.notMatch(text, /Sort|Seq Scan on uploads/)
})

import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { v7 as uuid } from 'uuid'
import { createToResultKey } from '../../schema/http/idempotency.ts'
import type { TestUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createPost } from '../helpers/graphql.ts'
import { create, createTwo, outcomeOf, shareOne, shareTwo, somebody } from '../helpers/idempotency.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { whileTemporary } from '../helpers/temporary-errors.ts'
import { fieldPart, filePart, post as upload } from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'

type Step = PromiseWithResolvers<void>

nightly('10.4 if the first request fails on another node, the repeat that waits for it is performed', async (t) => {
  const [hasBegun, mayFail, mayCommit] =
    Array.from({ length: 3 }, () => Promise.withResolvers<void>()) as [Step, Step, Step]
  let calls: (() => Promise<void>)[] = []
  const [one, two] = await createTwo(t, { hooks: { onUserCreate: async () => calls.shift()?.() } })
  calls = [
    async () => {
      hasBegun.resolve()
      await mayFail.promise
      throw Object.assign(new Error('no'), { statusCode: 400 })
    },
    // If the repeat was committed before the first request fails, that one would return its result.
    () => mayCommit.promise,
  ]
  const given = somebody()
  const first = create(one, 'key', given)
  await hasBegun.promise
  const repeat = create(two, 'key', given)
  mayFail.resolve()
  t.equal((await first).statusCode, 400)
  mayCommit.resolve()
  t.match(outcomeOf(await repeat), { status: 201, replayed: undefined })
})

nightly('10.4 a transaction that has locked an expired result delays no other request with a key', async (t) => {
  const usher = await shareOne({ deadlines: { ...slow, idempotency: 200 } })
  const sql = openSql(t, usher)
  const [expired, fresh] = [somebody(), { ...somebody(), password: 'correct horse battery' }]
  await create(usher, 'expired', expired)
  await sql`update idempotency_keys set expires_at = now()`
  await create(usher, 'fresh', fresh)
  await sql.begin(async (trx) => {
    await trx`select from idempotency_keys where expires_at <= now() for update`
    const [refused, replayed] = await Promise.all([
      create(usher, 'expired', { ...expired, password: 'correct horse battery' }), create(usher, 'fresh', fresh),
    ])
    t.equal(replayed.headers['idempotency-replayed'], 'true')
    t.equal(refused.statusCode, 409)
  })
  t.equal((await create(usher, 'expired', somebody())).statusCode, 201)
})

nightly('10.4 writes without a key succeed although the keys of others in their statement are taken again and again', async (t) => {
  const usher = await shareOne()
  const sql = openSql(t, usher, 8)
  const keys = Array.from({ length: 6 }, (_, number) => `key${number}`)
  const others = await Promise.all(keys.map(() => otherNode(sql, usher)))
  t.teardown(() => { for (const { release } of others) release() })
  await others[0]!.insert()
  const send = async (key?: string) => (await usher.inject('POST', '/graphql', {
    headers: { ...usher.admin.headers, ...key && { 'idempotency-key': key } }, payload: { query },
  })).json()
  const keyed = Promise.all(keys.map(send))
  const plain = Promise.all([send(), send()])
  let areDone = false
  Promise.all([keyed, plain]).then(() => { areDone = true }, () => {})
  let stored = 0
  for (const [index, key] of keys.entries()) {
    const { blocks, store, commit, rollback } = others[index]!
    await until('the statement waits', async () => areDone || await blocks() > 0)
    const next = others[index + 1]?.insert()
    if (next) await until('the next transaction waits behind it', async () => areDone || await blocks() > 1)
    // On a busy machine the writes have several statements, of which one may be ahead of the next transaction.
    const isFirst = await store(key).then(() => true, () => false)
    await (isFirst ? commit() : rollback())
    if (isFirst) stored++
    await next
  }
  t.not(stored, 0)
  for (const { data } of await plain) t.type(data?.createPost.id, 'string')
  for (const response of await keyed) t.type(response.data?.createPost.id, 'string', JSON.stringify(response))
  t.equal((await sql`select from posts where author_id = ${usher.admin.id}`).length, keys.length + 2)
})

nightly('10.4 of two different requests with one key that two nodes receive at once, only one is performed, and can be repeated', async (t) => {
  // In the plan that PostgreSQL keeps for repeated statements, a statement waits for other posts before it takes the
  // lock of the key.
  const databaseUrl = `${await testDatabaseUrl()}?plan_cache_mode=force_generic_plan`
  const [one, two] = await createTwo(t, { databaseUrl })
  const sql = openSql(t, one)
  const post = await createPost(one, one.admin)
  const greeting = [filePart('Hello'), fieldPart('description', 'A greeting')]
  const others: Record<string, (key: string) => Promise<LightMyRequestResponse>> = {
    'a change of a post': (key) => mutate(two, [`updatePost(id: "${post}", input: { title: "Changed" }) { id }`], key),
    'the creation of a user': (key) => create(two, key, { name: 'Ada', email: 'ada@example.com' }),
    'an upload': (key) => upload(two, greeting, { headers: { ...two.admin.headers, 'idempotency-key': key } }),
    'the same mutation with other names': (key) => mutate(two, ['c', 'd'].map(creating), key),
  }
  for (const [index, [name, other]] of Object.entries(others).entries()) {
    const requests = [() => mutate(one, ['a', 'b'].map(creating), `key${index}`), () => other(`key${index}`)]
    const responses = await whilePostsWait(sql, one, requests)
    const codes = responses.map(codeOf)
    const performed = codes.indexOf(undefined)
    t.match(codes[1 - performed], /^IDEMPOTENCY_KEY_(REUSED|IN_USE)$/, name)
    t.match(outcomeOf(await repeat(requests[performed]!)), { ...outcomeOf(responses[performed]!), replayed: 'true' })
    t.equal(codeOf(await repeat(requests[1 - performed]!)), 'IDEMPOTENCY_KEY_REUSED')
    t.equal((await sql`delete from posts where title in ('a', 'b') returning id`).length, performed === 0 ? 2 : 0)
  }
})

t.test('10.4 if two nodes receive the same mutation of several fields at the same time, each field is performed once', async (t) => {
  const nodes = await shareTwo()
  const sql = openSql(t, nodes[0])
  const requests = nodes.map((node) => () => mutate(node, ['a', 'b', 'c'].map(creating), 'key'))
  const responses = await whilePostsWait(sql, nodes[0], requests)
  // The other request waits for a second at most.
  const [first, second] = await Promise.all(responses.map((response, index) =>
    codeOf(response) === 'IDEMPOTENCY_KEY_IN_USE' ? repeat(requests[index]!) : response))
  t.notOk(codeOf(first!))
  t.same(second!.json(), first!.json())
  t.same((await sql`select title from posts where author_id = ${nodes[0].admin.id} order by title`).map(({ title }) => title), ['a', 'b', 'c'])
})

const creating = (title: string) => `${title}: createPost(input: { title: "${title}", content: "B" }) { id }`

const mutate = ({ inject, admin }: TestUsher, fields: readonly string[], key: string) =>
  inject('POST', '/graphql', {
    headers: { ...admin.headers, 'idempotency-key': key }, payload: { query: `mutation { ${fields.join(' ')} }` },
  })

const codeOf = (response: LightMyRequestResponse): string | undefined =>
  response.json().errors?.[0].extensions.code ?? response.json().code

const repeat = (send: () => Promise<LightMyRequestResponse>): Promise<LightMyRequestResponse> =>
  whileTemporary(send, codeOf)

// Sends requests, of which the first one creates posts, while a transaction makes new posts wait: each once the one
// before waits or is done.
async function whilePostsWait (
  sql: ReturnType<typeof openSql>, usher: TestUsher, requests: readonly (() => Promise<LightMyRequestResponse>)[]
) {
  const { insert, blocks, rollback, release } = await otherNode(sql, usher)
  let done = 0
  const sent: Promise<LightMyRequestResponse>[] = []
  try {
    await insert()
    for (const send of requests) {
      sent.push(repeat(send).finally(() => { done++ }))
      await until('it waits or is done', async () => done + await blocks() === sent.length)
    }
  } finally {
    await rollback()
    release()
  }
  return Promise.all(sent)
}

const query = 'mutation { createPost(input: { title: "A", content: "B" }) { id } }'

// Writes like another node that performs the same requests, in steps.
async function otherNode (sql: ReturnType<typeof openSql>, { admin }: TestUsher) {
  const connection = await sql.reserve()
  const [{ pid }] = await connection`select pg_backend_pid() as pid` as unknown as [{ pid: number }]
  // The content of a request includes the name of its operation. This one has none.
  const toResultKey = createToResultKey(undefined)
  const id = uuid()
  await connection`begin`
  return {
    insert: () =>
      connection`insert into posts (id, author_id, title, content) values (${id}, ${admin.id}, 'A', 'B')`.execute(),
    blocks: async () => (await sql`select from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`).length,
    async store (name: string) {
      const { key, part, fingerprint } = toResultKey({
        actorId: admin.id,
        key: name,
        part: 'createPost',
        operation: 'graphql',
        content: { query: `${query}\n#`, variables: undefined },
      })
      await connection`insert into idempotency_keys (key, part, fingerprint, kind, record_id, result)
        select ${key}, ${part}, ${fingerprint}, 'post', id, row_to_json(post)::text
        from (select id, position, epoch, author_id as "authorId", title, content, created_at as "createdAt" from posts where id = ${id}) post`
    },
    commit: () => connection`commit`,
    rollback: () => connection`rollback`,
    release: connection.release,
  }
}

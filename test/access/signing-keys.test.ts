import { createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createLocalJWKSet, createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import postgres, { type ISql } from 'postgres'
import t, { type Test } from 'tap'
import { openDatabase } from '../../db/driver/connection.ts'
import { rotateSigningKey, type Rotation } from '../../db/access/signing-keys.ts'
import { createUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const SECRET = 'a secret of many words'
const OTHER_SECRET = 'another secret of many words'
const TOKEN_SECONDS = 960
const LEASE_MS = 150
const MISSING = 'usher: secret is required, because the signing keys in the database are encrypted with one'
const WRONG = 'usher: secret must be the one that the signing keys in the database are encrypted with'
const REFUSED = [401, 'Bearer error="invalid_token"', 'INVALID_TOKEN']

interface KeyRow { id: string, private_key: string, public_key: string, active_at: Date }

const kidOf = (token: string) => decodeProtectedHeader(token).kid!
const kidsOf = async ({ inject }: TestUsher): Promise<string[]> =>
  (await inject('GET', '/.well-known/jwks.json')).json().keys.map(({ kid }: { kid: string }) => kid)
const get = ({ inject }: TestUsher, token: string) =>
  inject('GET', '/api/protected', { headers: { authorization: `Bearer ${token}` } })
const statusOf = async (usher: TestUsher, token: string) => (await get(usher, token)).statusCode

async function ask (usher: TestUsher, token: string) {
  const { statusCode, headers, body } = await get(usher, token)
  return [statusCode, headers['www-authenticate'], JSON.parse(body).code]
}

// Rotates the key without a server, as the command line does.
async function rotate (t: Test, { options }: TestUsher, rotation: Partial<Rotation> = {}): Promise<string> {
  const fail = (_: object, message: string) => { t.fail(message) }
  const log = { warn: fail, info: (message: string) => { t.fail(message) }, error: fail }
  const { db, close } = openDatabase({ database: options.databaseUrl!, schema: options.schema!, poolSize: 2, log })
  try {
    return await rotateSigningKey(db, { tokenSeconds: TOKEN_SECONDS, ...rotation }) as string
  } finally {
    await close()
  }
}

// Signs the claims of a token with another key.
function forge (token: string, kid: string, key: KeyObject): string {
  const parts = [{ alg: 'EdDSA', typ: 'JWT', kid }, decodeJwt(token)]
  const input = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${input}.${sign(null, Buffer.from(input), key).toString('base64url')}`
}

// Simulates that time has passed for the keys.
const pass = (sql: ISql, time: string) => sql`update signing_keys set active_at = active_at - ${time}::interval`

const relogin = (usher: TestUsher) => usher.login(usher.admin)

t.test('4 during a rotation no node rejects a valid token', async (t) => {
  const one = await createUsher(t)
  const two = await createUsher(t, one.options)
  const nodes = [one, two]
  const sql = openSql(t, one)
  const old = await one.createUser()
  const oldKid = kidOf(old.token)
  const tokens = [old.token, one.admin.token]
  const statuses = new Map<number, number>()
  const done = new AbortController()
  const load = Promise.all(nodes.map(async (node) => {
    while (!done.signal.aborted) {
      for (const token of tokens) {
        const status = await statusOf(node, token)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
  }))
  const all = async (isSo: (node: TestUsher) => Promise<boolean>) => (await Promise.all(nodes.map(isSo))).every(Boolean)
  const login = async (node: TestUsher): Promise<LoggedIn> => {
    const session = await node.login(old)
    tokens.push(session.token)
    return session
  }

  const newKid = await rotate(t, one)
  await until('both nodes tell the new key', () => all(async (node) => (await kidsOf(node)).length === 2))
  for (const node of nodes) {
    t.same(await kidsOf(node), [newKid, oldKid])
    t.equal(kidOf((await login(node)).token), oldKid, 'it does not sign yet')
  }

  t.comment('its time comes')
  await pass(sql, '300 seconds')
  await until('both nodes sign with it', () => all(async (node) => kidOf((await login(node)).token) === newKid))
  for (const [here, there] of [[one, two], [two, one]] as const) {
    const { token } = await login(here)
    t.equal(await statusOf(there, token), 200, 'what one signs the other accepts at once')
    t.equal(await statusOf(there, old.token), 200, 'what was signed before lives on')
  }

  t.comment('as long as a token of the old one may live, and a minute for the clocks')
  await pass(sql, '15 minutes 30 seconds')
  const { token } = await login(one)
  for (const node of nodes) {
    t.same(await kidsOf(node), [newKid, oldKid])
    for (const each of [old.token, token]) t.equal(await statusOf(node, each), 200)
    const keys = createLocalJWKSet((await node.inject('GET', '/.well-known/jwks.json')).json())
    for (const each of [old.token, token]) {
      t.equal(
        (await jwtVerify(each, keys, { issuer: 'usher', audience: 'usher', algorithms: ['EdDSA'] })).payload.sub,
        old.id,
        'by another library'
      )
    }
  }
  done.abort()
  await load
  t.same([...statuses.keys()], [200], `${statuses.get(200)} requests`)

  t.test('4 a key without living tokens is deleted, and tokens signed with it are rejected', async (t) => {
    await pass(sql, '30 seconds')
    await until('both nodes forget the old key', () => all(async (node) => (await kidsOf(node)).length === 1))
    // A node rejects the key's tokens as soon as the last one has expired, and then deletes the key.
    await until('it is deleted', async () => (await sql`select 1 from signing_keys`).length === 1)
    for (const node of nodes) {
      t.same(await ask(node, old.token), REFUSED, 'though it was remembered')
      t.equal(await statusOf(node, token), 200)
    }
  })

  t.test('4.9 services may keep the key set for as long as a new key waits before it signs', async (t) => {
    await rotate(t, one)
    const [{ seconds }] =
      await sql`select extract(epoch from max(active_at) - clock_timestamp())::float8 as seconds from signing_keys` as unknown as [{ seconds: number }]
    t.ok(seconds > 290 && seconds <= 300)
    const url = await two.app.listen({ port: 0, host: '127.0.0.1' })
    t.ok(await jwtVerify(token, createRemoteJWKSet(new URL('/.well-known/jwks.json', url))))
    t.notMatch((await two.inject('GET', '/.well-known/jwks.json')).body, /"d"|PRIVATE|sealed/)
  })

  t.test('4 if keys are deleted manually, their tokens are rejected, and a new key is created', async (t) => {
    const before = await relogin(one)
    await sql`delete from signing_keys`
    await until('both nodes know another key', () => all(async (node) => {
      const kids = await kidsOf(node)
      return kids.length === 1 && kids[0] !== newKid
    }))
    t.same(await kidsOf(one), await kidsOf(two))
    for (const node of nodes) t.same(await ask(node, before.token), REFUSED)
    t.equal(await statusOf(two, (await relogin(one)).token), 200)
  })
})

nightly('4 of many nodes, one rotates a key that has reached its age', async (t) => {
  const one = await createUsher(t, { signingKeySeconds: 60 })
  const two = await createUsher(t, one.options)
  const three = await createUsher(t, one.options)
  const sql = openSql(t, one)
  t.equal((await kidsOf(one)).length, 1, 'not before its time')
  await pass(sql, '60 seconds')
  for (const node of [one, two, three]) {
    await until('a node knows the new key', async () => (await kidsOf(node)).length === 2)
  }
  t.equal(kidOf((await relogin(two)).token), kidOf(one.admin.token), 'the old one signs meanwhile')
  // `close` waits until the nodes have finished what they are doing.
  for (const { app } of [one, two, three]) await app.close()
  t.equal((await sql`select 1 from signing_keys`).length, 2)

  t.test('4 the command rotates without a running node and deletes expired keys', async (t) => {
    await pass(sql, '1 hour')
    const kid = await rotate(t, one)
    t.same(await sql`select id from signing_keys order by active_at desc limit 1`, [{ id: kid }])
    t.equal((await sql`select 1 from signing_keys`).length, 2)
  })

  t.test('4 a node rotates at its start too', async (t) => {
    await pass(sql, '360 seconds')
    const four = await createUsher(t, one.options)
    await until('the node knows the new key', async () => (await kidsOf(four)).length === 3)

    t.test('4 a failed rotation is tried again', async (t) => {
      await sql`create sequence attempts`
      await sql`create function refuse() returns trigger language plpgsql set search_path from current as $$ begin perform nextval('attempts'); raise exception 'no'; end $$`
      await sql`create trigger refuse before insert on signing_keys execute function refuse()`
      await pass(sql, '360 seconds')
      await until('it was tried', async () => (await sql`select 1 from attempts where is_called`).length === 1)
      t.equal(await statusOf(four, (await relogin(four)).token), 200)
      await sql`drop trigger refuse on signing_keys`
      await pass(sql, '1 second')
      await until('the node knows the new key', async () => (await kidsOf(four)).length === 4)
    })
  })
})

t.test('4 the keys are created once and shared by all nodes', async (t) => {
  const first = await createUsher(t)
  const nodes = await Promise.all([1, 2, 3].map(() => createUsher(t, first.options)))
  const keys = await Promise.all([first, ...nodes].map(kidsOf))
  t.equal(new Set(keys.flat()).size, 1)
  for (const node of nodes) t.equal(await statusOf(node, first.admin.token), 200)

  t.test('4 a node that starts with an existing key takes no lock and writes nothing', async (t) => {
    await pass(openSql(t, first), '1 hour')
    const statements: string[] = []
    const client = postgres(
      await testDatabaseUrl(), { max: 4, onnotice: () => {}, debug: (_, query) => { statements.push(query) } }
    )
    t.teardown(() => client.end({ timeout: 1 }))
    const { app } = await createUsher(t, { schema: first.options.schema, databaseUrl: undefined, sql: client })
    await app.close()
    // The node also removes files of deleted uploads, at any time, and has a lock for that.
    const concerned =
      statements.filter((text) => /"signing_keys"|advisory/.test(text) && !text.includes('removal of uploads'))
    t.equal(concerned.length, 2, `read once, and once more when it hears of changes: ${concerned.join('; ')}`)
    for (const text of concerned) t.match(text, /^select /)
  })
})

nightly('4 a kid that a node does not know', async (t) => {
  let reads = 0
  const client = postgres(await testDatabaseUrl(), {
    max: 4, onnotice: () => {}, debug: (_, query) => { if (/from .*signing_keys/s.test(query)) reads++ },
  })
  t.teardown(() => client.end({ timeout: 1 }))
  const one = await createUsher(t)
  const two = await createUsher(t, { schema: one.options.schema, databaseUrl: undefined, sql: client })
  const sql = openSql(t, one)

  t.test('4 the node reads the keys from the database before it rejects the token', async (t) => {
    await sql`alter table signing_keys disable trigger keys_changed`
    const kid = await rotate(t, one, { leadSeconds: 0 })
    await sql`alter table signing_keys enable trigger keys_changed`
    const [row] = await sql<KeyRow[]>`select * from signing_keys where id = ${kid}`
    t.same((await kidsOf(two)).length, 1, 'nobody has told it')
    const token = forge(one.admin.token, kid, createPrivateKey(row!.private_key))
    t.same(await Promise.all([1, 2, 3].map(() => statusOf(two, token))), [200, 200, 200])
    t.equal((await kidsOf(two)).length, 2)
  })

  t.test('4 many such tokens cause at most one read per second', async (t) => {
    const [row] = await sql<KeyRow[]>`select * from signing_keys limit 1`
    const key = createPrivateKey(row!.private_key)
    const tokens =
      Array.from({ length: 300 }, (_, number) => forge(one.admin.token, String(number).padStart(43, 'x'), key))
    const [since, before] = [performance.now(), reads]
    let rounds = 0
    while (performance.now() - since < 1500) {
      const answers = await Promise.all(tokens.map((token) => ask(two, token)))
      t.same(answers, tokens.map(() => REFUSED), `round ${++rounds}`)
    }
    const most = Math.floor((performance.now() - since) / 1000) + 1
    t.ok(reads > before && reads - before <= most, `${reads - before} reads for ${rounds * 300} requests`)
    t.equal(await statusOf(two, one.admin.token), 200)
  })

  t.test('4 if the node cannot read changed keys, it accepts no token unverified', async (t) => {
    const unknown = forge(
      one.admin.token,
      'x'.repeat(43),
      createPrivateKey((await sql<KeyRow[]>`select * from signing_keys`)[0]!.private_key)
    )
    await sql`alter table signing_keys rename to mislaid`
    await sql`select pg_notify(${`${one.options.schema}_keys_changed`}, '')`
    const before = reads
    // The second read is the one for this token.
    await until('both reads have failed', async () => {
      return await statusOf(two, unknown) === 401 && reads >= before + 2
    })
    t.equal(await statusOf(two, one.admin.token), 503)
    await sql`alter table mislaid rename to signing_keys`
    t.equal(await statusOf(two, one.admin.token), 200)
    await rotate(t, one)
    await until('it hears again', async () => (await kidsOf(two)).length === 3)
  })
})

nightly('4 an unknown kid gets 503 while the database is unavailable', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })
  const { token } = usher.admin
  const [row] = await openSql(t, usher)<KeyRow[]>`select * from signing_keys`
  const unknown = forge(token, 'x'.repeat(43), createPrivateKey(row!.private_key))
  proxy.refuse()
  await until('it says so', async () => await statusOf(usher, unknown) === 503)
  t.equal((await get(usher, unknown)).headers['retry-after'], '1')
  t.same(await ask(usher, `${token}x`), REFUSED, 'not for what is no token')
  t.same(await ask(usher, forge(token, row!.id, createPrivateKey(row!.private_key)).replace('.', '.e30.')), REFUSED)
  await proxy.listen()
  await until('it asks again', async () => await statusOf(usher, unknown) === 401)
})

t.test('4 with a secret, the private keys are stored encrypted', async (t) => {
  const usher = await createUsher(t, { secret: SECRET, signingKeySeconds: 60 })
  const { options } = usher
  const sql = openSql(t, usher)
  const list = () => sql<KeyRow[]>`select * from signing_keys order by active_at desc`

  t.test('4 the table contains no readable key', async (t) => {
    await rotate(t, usher, { secret: SECRET, leadSeconds: 0 })
    const rows = await list()
    t.equal(rows.length, 2)
    for (const row of rows) {
      t.match(row.private_key, /^sealed1\.[\w-]{100,}$/)
      t.notMatch(Buffer.from(row.private_key.slice('sealed1.'.length), 'base64url').toString('latin1'), /PRIVATE/)
    }
    t.not(rows[0]!.private_key.slice(0, 30), rows[1]!.private_key.slice(0, 30), 'a salt each')
    const another = await createUsher(t, options)
    t.equal(await statusOf(usher, another.admin.token), 200)
    t.equal(await statusOf(another, usher.admin.token), 200)
  })

  t.test('4 without the secret, or with another one, a node does not start', async (t) => {
    await t.rejects(createUsher(t, { ...options, secret: undefined }), { message: MISSING })
    await t.rejects(createUsher(t, { ...options, secret: OTHER_SECRET }), { message: WRONG })
  })

  t.test('4 an encrypted key can only be decrypted complete and under its own id', async (t) => {
    const [newest, older] = await list() as unknown as [KeyRow, KeyRow]
    const changed = newest.private_key.replace(/.$/, (last) => last === 'A' ? 'Q' : 'A')
    for (const stored of [
      older.private_key, changed, newest.private_key.slice(0, -8), 'sealed1.', `${newest.private_key.slice(0, 60)}AAAA`,
    ]) {
      await sql`update signing_keys set private_key = ${stored} where id = ${newest.id}`
      await t.rejects(createUsher(t, options), { message: WRONG }, stored.slice(0, 20))
    }
    await sql`update signing_keys set private_key = ${newest.private_key} where id = ${newest.id}`
    t.equal(kidOf((await relogin(usher)).token), newest.id, 'a node that runs goes on with what it has opened')
  })

  t.test('4 to change the secret, rotate with the new one and restart the nodes one by one', async (t) => {
    const kid = await rotate(t, usher, { secret: OTHER_SECRET })
    const renewed = await createUsher(t, { ...options, secret: OTHER_SECRET, signingKeySeconds: 86400 })
    t.equal(kidOf(renewed.admin.token), kid, 'it signs with the only key that it can open')
    t.equal(await statusOf(usher, renewed.admin.token), 200)
    const { token } = await relogin(usher)
    t.not(kidOf(token), kid, 'a node with the old secret signs with what it has')
    t.equal(await statusOf(renewed, token), 200)
    t.equal(await statusOf(renewed, usher.admin.token), 200)
    await t.rejects(createUsher(t, options), { message: WRONG }, 'and cannot start any more')

    await sql.begin(async (trx) => {
      await trx`delete from signing_keys where id <> ${kid}`
      await pass(trx, '400 seconds')
    })
    await until('the node with the old secret has no key left', async () => (await kidsOf(usher)).length === 1)
    const { email, password } = usher.admin
    const response = await usher.inject('POST', '/api/auth/login', { payload: { email, password } })
    t.same([response.statusCode, response.json()], [500, { error: 'The server failed', code: 'INTERNAL_ERROR' }])
    t.equal(await statusOf(usher, renewed.admin.token), 200, 'it still knows who comes')
    await usher.app.close()
    t.same(
      (await list()).map(({ id }) => id), [kid], 'and does not rotate by age, since the others could not open its key'
    )
  })
})

nightly('4 keys stored in plain text are replaced when a node starts with a secret', async (t) => {
  const plain = await createUsher(t)
  const sql = openSql(t, plain)
  const list = () => sql<KeyRow[]>`select * from signing_keys order by active_at desc`
  const waiting = await rotate(t, plain)
  const leaked = await list()
  t.match(leaked.map((row) => row.private_key), [/^-----BEGIN PRIVATE KEY-----/, /^-----BEGIN PRIVATE KEY-----/])
  const [one, two] =
    await Promise.all([1, 2].map(() => createUsher(t, { ...plain.options, secret: SECRET }))) as [TestUsher, TestUsher]
  const rows = await list()
  t.match(rows.map((row) => row.private_key), [/^sealed1\./, /^sealed1\./], 'one new key, however many nodes start')
  t.notOk(rows.some(({ id }) => id === waiting), 'a key that has signed nothing is gone')
  for (const node of [one, two]) t.equal(kidOf(node.admin.token), rows[0]!.id, 'the new one signs at once')
  for (const [here, there] of [[plain, one], [one, plain], [one, two]] as const) {
    t.equal(await statusOf(there, here.admin.token), 200)
    t.equal(await statusOf(there, (await relogin(here)).token), 200, 'a node that runs without it goes on')
  }
  await t.rejects(createUsher(t, plain.options), { message: MISSING })

  t.test('4 and rejected as soon as their tokens have expired', async (t) => {
    const [row] = leaked.slice(-1)
    const forged = forge(one.admin.token, row!.id, createPrivateKey(row!.private_key))
    t.equal(await statusOf(one, forged), 200, 'as long as they may live, nobody can tell them apart')
    // The rule keeps the key in the table, so that no node deletes it or reads the keys again.
    await sql`create rule keep as on delete to signing_keys do instead nothing`
    await pass(sql, `${TOKEN_SECONDS - 1} seconds`)
    await until('the key is unknown', async () => await statusOf(one, forged) === 401)
    t.same(await ask(one, forged), REFUSED)
    t.same(await kidsOf(one), [rows[0]!.id])
    t.equal((await list()).length, 2)
    t.equal(await statusOf(one, (await relogin(one)).token), 200)
  })
})

nightly('4 a node without notifications rejects a revoked key at once', async (t) => {
  const one = await createUsher(t)
  const proxy = await createProxy(t, await testDatabaseUrl())
  const deaf = await createUsher(t, { ...one.options, notificationsUrl: proxy.url })
  const { token } = await relogin(one)
  t.equal(await statusOf(deaf, token), 200)
  proxy.freeze()
  // The lease of the notifications has expired.
  await delay(LEASE_MS)
  t.equal(await statusOf(deaf, token), 200, 'it asks the database')
  await rotate(t, one, { leadSeconds: 0, revoke: true })
  t.strictSame(await ask(deaf, token), REFUSED)
  const { token: next } = await relogin(one)
  t.equal(await statusOf(deaf, next), 200)
})

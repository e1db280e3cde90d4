import { createHmac, pbkdf2Sync } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { mkdir, readdir, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import t, { type Test } from 'tap'
import { createClient } from '../../../db/driver/client.ts'
import { explainDatabaseUrl, parseDatabaseUrl } from '../../../schema/options/database-url.ts'
import { createUsher } from '../../helpers/app.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'

// --- the messages of a server ---------------------------------------------------------------------------

function message (type: string, ...parts: (string | number | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) =>
    typeof part === 'number' ? Buffer.from(Uint32Array.of(part).buffer).reverse() : Buffer.from(part)))
  return Buffer.concat([Buffer.from(type), Buffer.from(Uint32Array.of(4 + body.length).buffer).reverse(), body])
}

const CLEARTEXT = message('R', 3)
const MD5 = message('R', 5, 'salt')
const MECHANISMS = message('R', 10, 'SCRAM-SHA-256\0\0')
const OK = message('R', 0)
const READY = message('Z', 'I')
// The answer to a statement, with one row and one column.
const ROW = Buffer.concat([
  message(
    'T', Buffer.from([0, 1]), 'one\0', 0, Buffer.from([0, 0]), 25, Buffer.from([255, 255]), 0, Buffer.from([0, 0])
  ),
  message('D', Buffer.from([0, 1]), 1, 'x'), message('C', 'SELECT 1\0'), READY,
])
const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest()

const PASSWORD = 'correct horse'
const SALT = 'c2FsdA=='

/** Starts a server that gives these answers, one for each of the client's messages. A function gets that message. */
async function startServer (t: Test, answers: (Buffer | ((message: string) => Buffer))[]) {
  let received = ''
  const server = createServer((socket) => {
    let step = 0
    socket.on('error', () => {}).on('data', (data) => {
      received += data.toString('latin1')
      const answer = answers[step++]
      if (answer) socket.write(typeof answer === 'function' ? answer(data.toString('latin1')) : answer)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url =
    `postgres://usher:${encodeURIComponent(PASSWORD)}@127.0.0.1:${(server.address() as AddressInfo).port}/usher?require_auth=scram-sha-256`
  const sql = createClient(url, { max: 1, fetch_types: false, connect_timeout: 5, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  return { sql, get received () { return received } }
}

const firstOf = (text: string) => text.slice(text.indexOf('n=*'))
const challengeOf = (first: string, iterations: number) => `r=${first.split('r=')[1]}server,s=${SALT},i=${iterations}`
const challenge = (text: string, iterations = 1) => message('R', 11, challengeOf(firstOf(text), iterations))

/** Returns the answers of a server that authenticates with SCRAM-SHA-256, and knows this password. */
function scram (password: string, after: Buffer = Buffer.concat([OK, READY])) {
  let first = ''
  return [
    MECHANISMS,
    (text: string) => {
      first = firstOf(text)
      return challenge(text)
    },
    (text: string) => {
      const final = text.slice(text.indexOf('c=biws'), text.indexOf(',p='))
      const serverKey = hmac(pbkdf2Sync(password, Buffer.from(SALT, 'base64'), 1, 32, 'sha256'), 'Server Key')
      const proof = hmac(serverKey, `${first},${challengeOf(first, 1)},${final}`).toString('base64')
      return Buffer.concat([message('R', 12, `v=${proof}`), after])
    },
  ]
}

// --- require_auth ---------------------------------------------------------------------------------------

t.test('9 with require_auth=scram-sha-256, a server that proves that it knows the password is used', async (t) => {
  const server = await startServer(t, [...scram(PASSWORD), ROW])
  t.match(await server.sql.unsafe('select 1', [], { prepare: false }).simple(), [{ one: 'x' }])
  t.notMatch(server.received, PASSWORD)

  const real = createClient(`${await testDatabaseUrl()}?require_auth=scram-sha-256`, { max: 1 })
  t.teardown(() => real.end())
  t.match(await real`select 1 as one`, [{ one: 1 }])
})

t.test('9 with require_auth=scram-sha-256, other servers get neither the password nor a statement, and their answers are ignored', async (t) => {
  const secret = 'select secret'
  const bad: [what: string, answers: Parameters<typeof startServer>[1], code: string][] = [
    ['clear text', [CLEARTEXT, Buffer.concat([OK, READY]), ROW], 'SCRAM_REQUIRED'],
    ['MD5', [MD5, Buffer.concat([OK, READY]), ROW], 'SCRAM_REQUIRED'],
    ['no authentication', [Buffer.concat([OK, READY]), ROW], 'SCRAM_REQUIRED'],
    ['no authentication, with an answer in advance', [Buffer.concat([OK, READY, ROW])], 'SCRAM_REQUIRED'],
    ['clear text after the mechanisms', [MECHANISMS, CLEARTEXT, Buffer.concat([OK, READY]), ROW], 'SCRAM_REQUIRED'],
    ['no proof', [MECHANISMS, (text) => challenge(text), Buffer.concat([OK, READY]), ROW], 'SCRAM_REQUIRED'],
    ['another password', [...scram('guess', Buffer.concat([OK, READY, ROW])), ROW], 'SASL_SIGNATURE_MISMATCH'],
    [
      'a proof before that of the client',
      [MECHANISMS, (text) => Buffer.concat([challenge(text), message('R', 12, 'v=null'), OK, READY, ROW])],
      'SASL_SIGNATURE_MISMATCH',
    ],
    [
      'so many iterations that the client would be busy for an hour',
      [MECHANISMS, (text) => challenge(text, 999_999_999)],
      'SCRAM_REQUIRED',
    ],
    ['a message without end', [Buffer.from('R\xff\xff\xff\xff', 'latin1')], 'SCRAM_REQUIRED'],
    ['a row before the authentication', [ROW], 'SCRAM_REQUIRED'],
  ]
  for (const [what, answers, code] of bad) {
    const server = await startServer(t, answers)
    // The second statement waits for the connection of the first.
    const results = await Promise.allSettled([secret, secret].map((text) => server.sql.unsafe(text).simple()))
    t.match(results[0], { status: 'rejected', reason: { code } }, what)
    t.same(results.filter(({ status }) => status === 'fulfilled'), [], what)
    for (const text of [PASSWORD, secret]) t.notOk(server.received.includes(text), `${what}: ${text}`)
  }
})

t.test('9 the bytes of a server may arrive one by one', async (t) => {
  const answers = scram(PASSWORD)
  const server = createServer((socket) => {
    let step = 0
    socket.on('error', () => {}).on('data', async (data) => {
      const answer = answers[step++] ?? ROW
      const bytes = typeof answer === 'function' ? answer(data.toString('latin1')) : answer
      for (const byte of bytes) {
        socket.write(Buffer.from([byte]))
        await new Promise(setImmediate)
      }
    }).setNoDelay()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const sql = createClient(
    `postgres://usher:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/usher?require_auth=scram-sha-256`,
    { max: 1, fetch_types: false }
  )
  t.teardown(() => sql.end({ timeout: 0 }))
  t.match(await sql.unsafe('select 1').simple(), [{ one: 'x' }])
})

// --- Unix sockets ---------------------------------------------------------------------------------------

t.test('9 a URL may name the folder of a Unix socket in both forms of psql, even one with a long path', async (t) => {
  const { hostname, port, username, password, pathname } = new URL(await testDatabaseUrl())
  const short = temporaryFolder()
  const folder = join(short, 'a,b '.repeat(50))
  await mkdir(folder)
  const server = createServer((socket) => { pipeline(socket, connect(Number(port), hostname), socket, () => {}) })
  // Node.js cannot listen on a long path.
  await once(server.listen(join(short, '.s.PGSQL.7')), 'listening')
  t.teardown(() => server.close())
  await symlink(join(short, '.s.PGSQL.7'), join(folder, '.s.PGSQL.7'))
  const user = `${username}:${password}`
  for (const url of [
    `postgres://${user}@${encodeURIComponent(short)}:7${pathname}`,
    `postgres://${user}@${encodeURIComponent(folder)}:7${pathname}?require_auth=scram-sha-256`,
    `postgres://${user}@elsewhere:7${pathname}?host=${encodeURIComponent(folder)}`,
    `postgresql://${user}@${pathname}?host=${short}&port=7&application_name=test`,
  ]) {
    const { admin, inject } = await createUsher(t, { databaseUrl: url })
    t.equal((await inject('GET', `/api/users/${admin.id}`)).statusCode, 200)
  }
  t.same(
    (await readdir(tmpdir())).filter((name) => name.startsWith(`usher-link-${process.pid}-`)), [], 'no link is left'
  )
})

t.test('9 URLs are parsed as by psql', async (t) => {
  const socketOf = (text: string) => parseDatabaseUrl(text).socket
  t.strictSame(socketOf('postgres://u:p@%2Fvar%2Frun/d'), { folder: '/var/run', port: 5432 })
  t.strictSame(socketOf('postgres://u:p@%2fvar%2Frun:99/d'), { folder: '/var/run', port: 99 })
  t.strictSame(socketOf('postgres://u:p@/d?host=/var/run'), { folder: '/var/run', port: 5432 })
  t.strictSame(socketOf('postgres://u:p@other:1/d?host=/var/run&port=2'), { folder: '/var/run', port: 2 })
  const placesOf = (text: string) => {
    const { hosts, ports } = parseDatabaseUrl(text)
    return hosts.map((host, index) => `${host} ${ports[index]}`).join()
  }
  t.equal(placesOf('postgres://u@one:1,two:2/d?application_name=a'), 'one 1,two 2')
  t.equal(placesOf('postgres://u@one/d?host=two'), 'two 5432', 'not silently the first host')
  t.equal(placesOf('postgres://u@/d?host=one,two&port=1,2&prepare=false'), 'one 1,two 2')
  t.equal(placesOf('postgres://u@/d?host=one,two&port=1'), 'one 1,two 1')
  t.equal(placesOf('postgres://u@[::1]:7,[fe80::2]/d'), '::1 7,fe80::2 5432')
  t.equal(placesOf('postgres:///d'), '')
  t.match(parseDatabaseUrl('postgres://u%40x:p%2Fw@one/%61pp'), { user: 'u@x', password: 'p/w', database: 'app' })
  const elsewhere = parseDatabaseUrl('postgresql://one/other?dbname=app&user=ada&password=a+b%26')
  t.match(elsewhere, { user: 'ada', password: 'a+b&', database: 'app' }, 'a plus sign is no space')
  const scram = parseDatabaseUrl('postgres://u@one:1/d?require_auth=scram-sha-256')
  t.match(scram, { hosts: ['one'], requiresScram: true, settings: {} })
  for (const [what, text] of [
    ['another method', 'postgres://one/d?require_auth=password'],
    ['TLS', 'postgres://one/d?require_auth=scram-sha-256&sslmode=require'],
    ['several hosts', 'postgres://one,two/d?require_auth=scram-sha-256'],
    ['several hosts', 'postgres://one/d?require_auth=scram-sha-256&host=one,two'],
  ] as const) t.throws(() => parseDatabaseUrl(text), TypeError, `require_auth is not ignored with ${what}`)
})

t.test('9 every parameter of libpq in a URL is used, changes nothing, or is rejected with a sentence', async (t) => {
  const read = (query: string) => parseDatabaseUrl(`postgres://u@one/d?${query}`)
  const plain = read('')
  for (const query of [
    'channel_binding=prefer', 'channel_binding=disable', 'keepalives=1', 'keepalives_interval=10', 'keepalives_count=3',
    'tcp_user_timeout=9000',
    'gssencmode=disable', 'gssencmode=prefer', 'target_session_attrs=any', 'target_session_attrs=read-write',
    'target_session_attrs=primary',
    'client_encoding=auto', 'sslmode=disable', 'sslcompression=0', 'krbsrvname=postgres', 'load_balance_hosts=random',
    'replication=false',
  ]) t.strictSame(read(query), plain, query)
  t.strictSame(read('keepalives=0').options, { keep_alive: null })
  t.strictSame(read('keepalives_idle=30&connect_timeout=5').options, { keep_alive: 30, connect_timeout: 5 })
  t.strictSame(read('fallback_application_name=a').settings, { application_name: 'a' })
  t.strictSame(read('fallback_application_name=a&application_name=b&options=-c%20jit%3Doff').settings, {
    application_name: 'b', options: '-c jit=off',
  })
  const modes = {
    'sslmode=allow': 'prefer',
    'sslmode=prefer': 'prefer',
    'sslmode=require': 'require',
    'sslmode=require&sslrootcert=/ca': 'verify-ca',
    'sslmode=verify-ca&sslrootcert=/ca': 'verify-ca',
    'sslmode=verify-full&sslrootcert=/ca': 'verify-full',
    'sslrootcert=system': 'verify-full',
    'sslrootcert=/ca': 'verify-ca',
    'sslcert=/cert&sslkey=/key': 'require',
    // That of Neon. A certificate that is not verified would not protect from a server in between.
    'sslmode=require&channel_binding=require': 'verify-full',
    'sslmode=require&channel_binding=require&sslrootcert=/ca': 'verify-ca',
  }
  for (const [query, mode] of Object.entries(modes)) t.equal(read(query).tls?.mode, mode, query)
  for (const query of [
    'hostaddr=::1', 'passfile=/f', 'service=s', 'servicefile=/f', 'requirepeer=postgres', 'sslcrldir=/d',
    'sslkeylogfile=/f', 'scram_client_key=k',
    'oauth_issuer=i', 'gssencmode=require', 'replication=database', 'target_session_attrs=standby', 'sslmode=always',
    'channel_binding=require',
    'connect_timeout=soon', 'ssl_min_protocol_version=SSLv3', 'host=/a,/b', 'port=many',
  ]) {
    const [name = ''] = query.split('=')
    const named = name === 'host' ? 'several hosts' : name
    t.match(explainDatabaseUrl(`postgres://u:secret@one/d?${query}`), new RegExp(`^${named}[ =].*\\.$`), query)
  }
  await t.rejects(createUsher(t, { databaseUrl: 'postgres://u:secret@one/d?service=main' }), {
    message: /^usher: databaseUrl must be a URL .* service is not supported: give host, user .* in the URL instead\.$/,
  })
  await t.rejects(createUsher(t, { databaseUrl: `${await testDatabaseUrl()}?schema=public` }), {
    message: 'usher: PostgreSQL rejects a parameter of the database URL ' +
      '(unrecognized configuration parameter "schema"): correct or remove it',
  })
})

import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import usher, { type UsherOptions } from '../../../app.ts'
import { openBreachedFile } from '../../../plugins/sign-in/passwords/breached-file.ts'
import { hashPassword } from '../../../plugins/sign-in/passwords/passwords.ts'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { uniqueSchema, testDatabaseUrl } from '../../helpers/database.ts'
import { slow } from '../../helpers/deadlines.ts'
import { createMailer } from '../../helpers/mail.ts'
import { organizationOptions, withOrganizations } from '../../helpers/organizations.ts'
import { openSql } from '../../helpers/sql.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'

const BREACHED = 'quiet lantern river'
const LIMIT_MS = 500
const CHEAP = { memoryKiB: 8, passes: 1 }
const rejected = { errors: ['password has appeared in a data breach'], code: 'BREACHED_PASSWORD' }

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()
const newEmail = () => `${randomUUID()}@example.com`
const newPassword = () => `violet engine ${randomUUID()}`

/** Writes a file as the official downloader does, with these hashes. Returns its path. */
function writeRanges (hashes: readonly string[], { newLine = '\r\n', ends = true, name = 'pwned.txt' } = {}): string {
  const path = join(temporaryFolder(), name)
  const lines = [...hashes].sort().map((hash, index) => `${hash}:${10 ** (index % 8)}`)
  writeFileSync(path, lines.join(newLine) + (ends ? newLine : ''))
  return path
}

const fileOf = (...passwords: string[]) =>
  writeRanges([...passwords.map(sha1), ...Array.from({ length: 2000 }, () => sha1(randomUUID()))])

/** Starts a service of ranges. It answers what `answer` does, and keeps the requests. */
async function startService (t: Test, answer: (response: ServerResponse, prefix: string) => void) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answer(response, request.url!.slice('/range/'.length))
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/range/` }
}

const rangeOf = (password: string, count: number) => {
  const others = Array.from({ length: 800 }, (_, index) => `${sha1(randomUUID()).slice(5)}:${index % 3}`)
  return [...others, `${sha1(password).slice(5)}:${count}`].sort().join('\r\n')
}

const create = ({ inject, admin: { headers } }: TestUsher, password: string) =>
  inject('POST', '/api/users', { headers, payload: { name: 'Ada', email: newEmail(), password } })

async function countsOf ({ app }: TestUsher): Promise<Record<string, number>> {
  const metric = (await app.usher.metrics()).find(({ name }) => name === 'usher_breached_password_checks_total')!
  return Object.fromEntries(metric.samples.map((sample) => [sample.labels['result'], 'value' in sample ? sample.value : NaN]))
}

t.test('23.1 a breached password is rejected wherever one is set, and never at a login', async (t) => {
  const inbox = createMailer()
  const service = await createUsher(t, {
    mailer: inbox.mailer, publicUrl: 'https://api.example.com', signUp: true, breachedPasswords: { file: fileOf(BREACHED) },
  })
  const { inject, createUser, login } = service
  const sql = openSql(t, service)
  const post = (path: string, payload: object, headers = {}) => inject('POST', path, { payload, headers })
  const isRejected = async (t: Test, response: ReturnType<typeof inject>) => {
    const { statusCode, body } = await response
    t.strictSame([statusCode, JSON.parse(body)], [400, rejected])
  }

  await t.test('creation by an admin', async (t) => {
    await isRejected(t, create(service, BREACHED))
    t.equal((await create(service, newPassword())).statusCode, 201)
  })

  await t.test('sign-up, for a new and a known address alike, and its confirmation', async (t) => {
    const known = await createUser()
    for (const email of [known.email, newEmail()]) {
      await isRejected(t, post('/api/auth/sign-up', { name: 'Ada', email, password: BREACHED }))
    }
    const email = newEmail()
    t.equal((await post('/api/auth/sign-up', { name: 'Ada', email, password: newPassword() })).statusCode, 202)
    const token = await inbox.token(email)
    await isRejected(t, post('/api/auth/sign-up/confirm', { token, password: BREACHED }))
    t.equal((await post('/api/auth/sign-up/confirm', { token, password: newPassword() })).statusCode, 201, 'the link still works')
  })

  await t.test('change, and the current one may be breached', async (t) => {
    const user = await createUser()
    const change = (currentPassword: string, password: string) =>
      inject('PUT', '/api/auth/password', { headers: user.headers, payload: { currentPassword, password } })
    await isRejected(t, change(user.password, BREACHED))
    // As a password whose breach came later.
    await sql`update users set password_hash = ${await hashPassword(BREACHED, CHEAP)} where id = ${user.id}`
    const before = await countsOf(service)
    t.equal((await login({ email: user.email, password: BREACHED })).id, user.id)
    t.strictSame(await countsOf(service), before, 'a login looks up nothing')
    t.equal((await change(BREACHED, newPassword())).statusCode, 204)
  })

  await t.test('reset, and the link still works', async (t) => {
    const user = await createUser()
    await post('/api/auth/password-reset', { email: user.email })
    const token = await inbox.token(user.email)
    await isRejected(t, post('/api/auth/password-reset/confirm', { token, password: BREACHED }))
    t.equal((await post('/api/auth/password-reset/confirm', { token, password: newPassword() })).statusCode, 204)
  })

  await t.test('invitation of a user', async (t) => {
    const { id, email } = (await inject('POST', '/api/users', {
      headers: service.admin.headers, payload: { name: 'Ada', email: newEmail() },
    })).json()
    await post(`/api/users/${id}/invitation`, {}, service.admin.headers)
    const token = await inbox.token(email)
    await isRejected(t, post('/api/auth/password-reset/confirm', { token, password: BREACHED }))
  })

  await t.test('first proof of an address in another browser', async (t) => {
    const user = await createUser()
    await inject('POST', `/api/users/${user.id}/email-verification`, { headers: user.headers })
    const token = await inbox.token(user.email)
    await isRejected(t, post('/api/auth/email-verification/confirm', { token, password: BREACHED }))
  })

  await t.test('other forms of Unicode are the same password', async (t) => {
    const composed = 'caf\u00e9 on the river'
    const service = await createUsher(t, { breachedPasswords: { file: fileOf(composed) } })
    await isRejected(t, create(service, 'cafe\u0301 on the river'))
  })

  t.strictSame((await countsOf(service))['unanswered'], 0)
})

t.test('23.1 a newcomer who joins an organisation, and the first admin, have no breached password', async (t) => {
  const breachedPasswords = { file: fileOf(BREACHED) }
  const { options, mails } = organizationOptions({ breachedPasswords })
  const service = await createUsher(t, options)
  const { createVerified, found, tokenTo } = withOrganizations(t, service, mails)
  const owner = await createVerified()
  const id = await found(owner)
  const email = newEmail()
  await service.inject('POST', `/api/organizations/${id}/invitations`, { headers: owner.headers, payload: { email, role: 'member' } })
  const payload = { token: await tokenTo(email), name: 'Ada', password: BREACHED }
  const response = await service.inject('POST', '/api/auth/invitations/accept', { payload })
  t.strictSame([response.statusCode, response.json()], [400, rejected])

  const admin = { email: 'root@example.com', password: BREACHED }
  await t.rejects(start(t, { admin, breachedPasswords }), { message: /has appeared in a data breach.*ADMIN_PASSWORD/ })
})

async function start (t: Test, options: UsherOptions): Promise<void> {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(usher, {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema(t.name),
    deadlines: slow,
    uploadsDir: temporaryFolder(),
    poolSize: 2,
    ...options,
  })
  await app.ready()
}

t.test('23.1 every hash of a file is found, and no other', async (t) => {
  for (const count of [1, 2, 80, 90, 91, 1500]) {
    for (const [newLine, ends] of [['\n', true], ['\r\n', true], ['\n', false]] as const) {
      const hashes = Array.from({ length: count }, () => sha1(randomUUID()))
      const file = await openBreachedFile(writeRanges(hashes, { newLine, ends }))
      const next = (hash: string) => hash.slice(0, -1) + (hash.endsWith('F') ? 'E' : 'F')
      const found = await Promise.all(hashes.map((hash) => file.has(hash)))
      const others = await Promise.all([...hashes.map(next), '0'.repeat(40), 'F'.repeat(40)].map((hash) => file.has(hash)))
      t.ok(found.every((has) => has), `${count} lines, ${JSON.stringify(newLine)}, ${ends}`)
      t.notOk(others.some((has) => has), `${count} lines`)
      await file.close()
    }
  }
})

t.test('23.1 a start says what is wrong with the file', async (t) => {
  const folder = temporaryFolder()
  const write = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const lines = Array.from({ length: 500 }, (_, index) => `${sha1(`${index}`)}:${500 - index}\n`)
  const wrong: readonly (readonly [string, RegExp])[] = [
    [join(folder, 'missing.txt'), /cannot be read \(ENOENT\)/],
    [folder, /it is not a file/],
    [write('empty.txt', ''), /it has no lines/],
    [write('by-count.txt', lines.join('')), /not ordered by hash/],
    [write('ntlm.txt', lines.map((line) => line.slice(8)).sort().join('')), /no SHA-1/],
    [write('words.txt', 'password\n123456\n'.repeat(100)), /no SHA-1/],
    [write('one-line.txt', 'A'.repeat(100_000)), /no SHA-1/],
  ]
  for (const [file, reason] of wrong) {
    await t.rejects(openBreachedFile(file), { message: reason }, file)
  }
  await t.rejects(start(t, { breachedPasswords: { file: wrong[0]![0] } }), { message: /breachedPasswords\.file .*missing\.txt cannot be used/ })
  await t.rejects(start(t, { breachedPasswords: { url: 'ftp://example.com' } }), { message: /breachedPasswords/ })
})

t.test('23.1 a service learns five digits of the hash, and its padding is no breach', async (t) => {
  let count = 3
  const { requests, url } = await startService(t, (response) => response.end(rangeOf(BREACHED, count)))
  const service = await createUsher(t, { breachedPasswords: { url } })
  const before = requests.length
  t.strictSame((await create(service, BREACHED)).json(), rejected)
  count = 0
  t.equal((await create(service, BREACHED)).statusCode, 201)
  const asked = requests.slice(before)
  t.strictSame(asked.map((request) => request.url), Array(2).fill(`/range/${sha1(BREACHED).slice(0, 5)}`))
  t.equal(asked[0]!.headers['add-padding'], 'true')
  t.match(await countsOf(service), { breached: 1, unanswered: 0 })
})

t.test('23.1 whatever a service does, a password is accepted in time, and that is counted', async (t) => {
  const suffix = sha1(BREACHED).slice(5)
  const answers: Record<string, (response: ServerResponse) => void> = {
    'stalls before the head': () => {},
    'stalls in the body': (response) => response.writeHead(200).write(`${suffix}:`),
    'breaks off': (response) => {
      response.writeHead(200, { 'content-length': 10_000 }).write(`${suffix}:3\r\n`)
      setImmediate(() => response.destroy())
    },
    fails: (response) => response.writeHead(503).end(`${suffix}:3`),
    redirects: (response) => response.writeHead(302, { location: '/range/elsewhere' }).end(),
    'sends HTML': (response) => response.end(`<p>${suffix}:3</p>`),
    'sends nothing': (response) => response.end(),
    'lies about one line': (response) => response.end(`${suffix}:3\r\n${suffix}:many`),
    compresses: (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(Buffer.from([31, 139, 8, 0])),
    floods: (response) => {
      response.on('error', () => {})
      const write = () => { if (!response.destroyed) response.write(`${suffix}:3\r\n`.repeat(1000), () => write()) }
      write()
    },
  }
  let name = 'fails'
  const { url } = await startService(t, (response) => answers[name]!(response))
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  const service = await createUsher(
    t, { breachedPasswords: { url }, deadlines: { ...slow, breachedPassword: LIMIT_MS } }, { logger }
  )
  const { unanswered: before = 0 } = await countsOf(service)
  for (name of Object.keys(answers)) {
    const startedAt = performance.now()
    t.equal((await create(service, BREACHED)).statusCode, 201, name)
    // The rest is for a busy machine.
    t.ok(performance.now() - startedAt < 10 * LIMIT_MS, `${name}: ${performance.now() - startedAt} ms`)
  }
  t.equal((await countsOf(service))['unanswered'], before + Object.keys(answers).length)
  t.match(lines.join(''), /accepted without the answer/)
  t.notMatch(lines.join(''), new RegExp(sha1(BREACHED).slice(0, 5)), 'the log has nothing of the hash')
})

t.test('23.1 a flood that waits for a service that stalls is bounded, and delays nobody for longer', async (t) => {
  let [open, most] = [0, 0]
  const { url } = await startService(t, (response) => {
    most = Math.max(most, ++open)
    response.on('close', () => { open-- })
  })
  const service = await createUsher(
    t, { breachedPasswords: { url }, deadlines: { ...slow, breachedPassword: LIMIT_MS } }
  )
  const responses = await Promise.all(Array.from({ length: 60 }, () => create(service, BREACHED)))
  t.ok(responses.every(({ statusCode }) => statusCode === 201))
  t.ok(most <= 16, `${most} requests at once`)
})

t.test('23.1 what a file has is not asked of the service', async (t) => {
  const { requests, url } = await startService(t, (response) => response.end(rangeOf(BREACHED, 3)))
  const service = await createUsher(t, { breachedPasswords: { file: fileOf('another of the breached'), url } })
  const before = requests.length
  t.strictSame((await create(service, 'another of the breached')).json(), rejected)
  t.equal(requests.length, before)
  t.strictSame((await create(service, BREACHED)).json(), rejected, 'what only the service knows')
  t.equal(requests.length, before + 1)
})

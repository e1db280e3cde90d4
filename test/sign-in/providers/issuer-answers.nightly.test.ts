import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import type { UsherOptions } from '../../../app.ts'
import { slow } from '../../helpers/deadlines.ts'
import { isNightly } from '../../helpers/nightly.ts'
import { errorIn, openProviders, startProvider, type FakeProvider } from '../../helpers/provider.ts'
import { cookiesOf } from '../../helpers/passkeys.ts'
import { openSql } from '../../helpers/sql.ts'

// Every kind of request to an issuer gets every kind of answer that proves nothing. A login then stops with a code that
// is documented, or goes on as the right user where the answer is not needed. When the issuer answers as it should
// again, the next login works: nothing that is wrong was kept.

const PAGE = '<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><p>Log in<br></body></html>'
const MIB = 1024 * 1024
const json = { 'content-type': 'application/json' }

interface Answer {
  readonly send: (response: ServerResponse) => unknown
  /** Whether it says that the issuer does not work, so that the user may try again. */
  readonly isOutage?: boolean
  /** Whether only a deadline ends it. */
  readonly isSilent?: boolean
}

const body = (content: string, type = 'application/json'): Answer => ({
  send: (response) => response.writeHead(200, { 'content-type': type }).end(content),
})
const status = (code: number, content: string, headers: Record<string, string> = {}): Answer => ({
  send: (response) => response.writeHead(code, { ...json, ...headers }).end(content),
})
const outage = (send: Answer['send']): Answer => ({ send, isOutage: true })
const silent = (send: Answer['send']): Answer => ({ send, isOutage: true, isSilent: true })
const raw = (head: string): Answer => outage((response) => response.socket!.end(head))

function flood (response: ServerResponse, chunk: Buffer): void {
  response.writeHead(200, json)
  const write = () => { while (!response.destroyed && response.write(chunk)); }
  response.on('drain', write).on('error', () => {})
  write()
}

// The nightly list tries all answers, and `npm test` those of each kind, because there are seven requests.
const DAILY: ReadonlySet<string> = new Set([
  'an empty body', 'a page', 'null', 'a member of JavaScript', 'a redirect', 'a failure', 'an endless body', 'half a head',
  'another protocol', 'silence', 'the first half', 'all, and a larger length',
])
const chosen = (answers: Readonly<Record<string, Answer>>): Record<string, Answer> =>
  Object.fromEntries(Object.entries(answers).filter(([name]) => isNightly || DAILY.has(name)))

/** The answers to every request. */
const usual = chosen({
  'an empty body': body(''),
  'white space': body(' \r\n\t '),
  'a page': body(PAGE, 'text/html; charset=utf-8'),
  'a page that says that it is JSON': body(PAGE),
  'a text': body('ok', 'text/plain'),
  'an array': body('[7,"x",null,[]]'),
  'a string': body('"a string"'),
  null: body('null'),
  'a number': body('7'),
  true: body('true'),
  'an empty object': body('{}'),
  'an error': body('{"error":{"message":"Internal error"},"message":7}'),
  'a member of JavaScript': body('{"__proto__":{"issuer":"x","sub":"x","id":7},"constructor":null,"toString":7}'),
  'bytes that are no UTF-8': { send: (response) => response.writeHead(200, json).end(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0])) },
  'deep JSON': body('['.repeat(100_000) + ']'.repeat(100_000)),
  'no content': { send: (response) => response.writeHead(204).end() },
  'no content, reset': { send: (response) => response.writeHead(205).end() },
  'partial content': status(206, '{}'),
  'a redirect': status(302, PAGE, { 'content-type': 'text/html', location: 'http://127.0.0.1:9/' }),
  'a redirect for good': status(308, '', { location: '/elsewhere' }),
  'not modified': { send: (response) => response.writeHead(304).end() },
  'a wrong request': status(400, PAGE, { 'content-type': 'text/html' }),
  'not found': status(404, PAGE, { 'content-type': 'text/html' }),
  'a status that nobody knows': raw('HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\n{}'),
  'a failure': outage((response) => response.writeHead(500, { 'content-type': 'text/html' }).end(PAGE)),
  'a failure of a proxy': outage((response) => response.writeHead(502).end()),
  'a limit': outage((response) => response.writeHead(429, { 'retry-after': 'soon' }).end(PAGE)),
  'an endless body': outage((response) => flood(response, Buffer.alloc(64 * 1024, ' '))),
  'an endless array': outage((response) => flood(response, Buffer.from('[['.repeat(10_000)))),
  nothing: raw(''),
  'half a head': raw('HTTP/1.1 200 OK\r\nContent-Le'),
  'no HTTP': raw('220 mail.example.com ESMTP\r\n'),
  'a giant head': raw(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(MIB)}\r\n\r\n{}`),
  'another protocol': raw('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
  'a redirect that never ends': silent((response) => response.writeHead(302, { location: '/' }).write('<')),
  silence: silent(() => {}),
})

/** Answers that follow from the right one: its beginning, with and without an end of the response. */
function cutOff (right: string): Record<string, Answer> {
  const half = right.slice(0, right.length / 2)
  const length = Buffer.byteLength(right)
  return chosen({
    'the first half': body(half),
    'all but the last character': body(right.slice(0, -1)),
    'the first half, and then no connection': outage((response) =>
      response.writeHead(200, { ...json, 'content-length': length }).write(half, () => response.socket!.end())),
    'the first half, and then a reset': outage((response) =>
      response.writeHead(200, { ...json, 'content-length': length }).write(half, () => response.socket!.resetAndDestroy())),
    'all, and a larger length': outage((response) =>
      response.writeHead(200, { ...json, 'content-length': length + 1 }).write(right, () => response.socket!.end())),
    'chunks without the last one': outage((response) =>
      response.writeHead(200, json).write(right, () => response.socket!.end())),
    'the first half, and then silence': silent((response) =>
      response.writeHead(200, { ...json, 'content-length': length }).write(half)),
    twice: body(right + right),
    'with something behind it': body(`${right}<!-- served by a proxy -->`),
  })
}

/** Documents of which one member has a wrong value. */
function wrongMembers (right: Record<string, unknown>, names: readonly string[], values: readonly unknown[]) {
  const tried = isNightly ? values : [values.at(0), values.at(-1)]
  const answers = names.flatMap((name) => tried.map((value): [string, Answer] =>
    [`${name}: ${JSON.stringify(value)}`, body(JSON.stringify({ ...right, [name]: value }))]))
  return Object.fromEntries(answers)
}

const NO_ADDRESSES = [undefined, null, '', ' ', 7, true, [], {}, '/relative', 'javascript:alert(1)', 'file:///etc/passwd']
// More than this, an app takes no providers.
const PROVIDERS = 50
const SILENCE_MS = 3000
const TRIES = 40
const PAUSE_MS = 250

type Usher = Awaited<ReturnType<typeof openProviders>>

/** An issuer that answers wrongly, and a node that has not heard of it before. */
interface Case {
  readonly name: string
  readonly answer: Answer
  readonly id: string
  readonly fake: FakeProvider
  readonly usher: Usher
  /** Another node with the same database. */
  readonly other: Usher
  readonly sql: ReturnType<typeof openSql>
}

/** Runs each answer with an issuer of its own. */
async function withEach (
  t: Test, answers: Readonly<Record<string, Answer>> | ((fake: FakeProvider) => Record<string, Answer>),
  run: (given: Case) => Promise<void>, options: Partial<FakeProvider['options']> = {}
): Promise<void> {
  const list = Object.keys(typeof answers === 'function' ? answers(await startProvider(t)) : answers)
  const all = await Promise.all(list.map(async (name, at) => {
    const fake = await startProvider(t)
    const answer = (typeof answers === 'function' ? answers(fake) : answers)[name]!
    return { name, answer, fake, id: `p${at}` }
  }))
  const groups = [
    all.filter(({ answer }) => answer.isSilent),
    ...Array.from({ length: Math.ceil(all.length / PROVIDERS) }, (_, at) =>
      all.slice(at * PROVIDERS, (at + 1) * PROVIDERS).filter(({ answer }) => !answer.isSilent)),
  ]
  for (const group of groups.filter(({ length }) => length > 0)) {
    const given: UsherOptions = {
      providers: Object.fromEntries(group.map(({ id, fake }) => [id, { ...fake.options, signUp: true, ...options }])),
      deadlines: group[0]!.answer.isSilent ? { ...slow, provider: SILENCE_MS } : slow,
    }
    const usher = await openProviders(t, given)
    const other = await openProviders(t, { ...given, schema: usher.options.schema })
    const sql = openSql(t, usher)
    await Promise.all(group.map((one) => run({ ...one, usher, other, sql })))
  }
}

/** Lets the issuer answer the requests for a path wrongly, and the others as before. */
function misbehave (
  { fake, answer }: Pick<Case, 'fake' | 'answer'>, path: string, rest: Parameters<FakeProvider['misbehave']>[0] = {}
): void {
  fake.misbehave({
    ...rest,
    answer (asked, response) {
      if (asked !== path) return rest.answer?.(asked, response) ?? false
      response.on('error', () => {})
      answer.send(response)
      return true
    },
  })
}

const explained = new Set<string>()
const SESSION = /usher_session[^=]*=[^;]/

const newcomer = () => ({ sub: randomUUID(), email: `${randomUUID()}@example.com`, email_verified: true, name: 'Ada' })

/** Expects that a login has stopped, and where the user learns why. */
async function stopped (
  t: Test, { name, usher: { inject } }: Case, response: LightMyRequestResponse, code: string
): Promise<void> {
  t.strictSame([response.statusCode, errorIn(response)], [303, code], name)
  t.match(response.headers.location, /^\/login\?error=/, name)
  t.notMatch(cookiesOf(response), SESSION, `${name}: no session`)
  if (explained.has(code)) return
  explained.add(code)
  t.match((await inject('GET', response.headers.location!)).body, /id="alert">[A-Z]/, `${code}: the page explains it`)
}

const countIdentities = async ({ sql, id }: Case) => (await sql`select from identities where provider = ${id}`).length

/** Expects that a login works, at the latest when the failure is forgotten, and is that of the right user. */
async function worksAgain (
  t: Test, { name, usher }: Case, logIn: () => Promise<LightMyRequestResponse>, email: string
): Promise<void> {
  for (let tries = 1; ; tries++) {
    // The login cannot begin as long as the failure is remembered.
    const response = await logIn().catch((error: Error) => error)
    const failure = response instanceof Error ? response.message : errorIn(response)
    if (!(response instanceof Error) && failure === null) {
      t.match(cookiesOf(response), SESSION, name)
      t.equal((await usher.sessionOf(response)).user['email'], email, `${name}: and then a login works`)
      return
    }
    if (tries === TRIES) {
      t.fail(`${name}: no login works after it: ${failure}`)
      return
    }
    await delay(PAUSE_MS)
  }
}

const codeOf = ({ answer }: Case): string => answer.isOutage ? 'PROVIDER_UNAVAILABLE' : 'PROVIDER_REJECTED'

const DISCOVERY = '/.well-known/openid-configuration'

const discovered = ({ issuer }: FakeProvider) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  id_token_signing_alg_values_supported: ['ES256'],
})

t.test('16.5 what an issuer answers in place of its configuration', async (t) => {
  const answers = (fake: FakeProvider): Record<string, Answer> => {
    const right = discovered(fake)
    return {
      ...usual,
      ...cutOff(JSON.stringify(right)),
      ...wrongMembers(right, ['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri'], NO_ADDRESSES),
      'another issuer': body(JSON.stringify({ ...right, issuer: 'http://127.0.0.1:9' })),
    }
  }
  await withEach(t, answers, async (given) => {
    const { id, fake, usher, other } = given
    misbehave(given, DISCOVERY)
    const start = () => usher.inject('GET', `/api/auth/providers/${id}/start`)
    await stopped(t, given, await start(), codeOf(given))
    await stopped(t, given, await start(), codeOf(given))
    const person = newcomer()
    fake.misbehave({})
    await worksAgain(t, given, () => usher.logIn(id, fake, person), person.email)

    // The other node, to which the browser comes back, has not read it yet.
    const logInThere = async () => {
      const begun = await usher.begin(id)
      return other.finish(id, fake.authorize(begun.url, person), begun.cookie)
    }
    misbehave(given, DISCOVERY)
    await stopped(t, given, await logInThere(), codeOf(given))
    fake.misbehave({})
    await worksAgain(t, given, logInThere, person.email)
  })
})

t.test('16.5 a configuration of which only the callback shows that it is wrong is read again', async (t) => {
  const answers = (fake: FakeProvider) => {
    const right = discovered(fake)
    return {
      'a token endpoint that does not exist': body(JSON.stringify({ ...right, token_endpoint: `${fake.issuer}/tok` })),
      'keys that do not exist': body(JSON.stringify({ ...right, jwks_uri: `${fake.issuer}/jw` })),
      'keys of another server': body(JSON.stringify({ ...right, jwks_uri: 'http://127.0.0.1:9/jwks' })),
      ...wrongMembers(right, ['id_token_signing_alg_values_supported'], [undefined, null, '', 7, {}, [], ['none']]),
    }
  }
  await withEach(t, answers, async (given) => {
    const { id, fake, usher } = given
    const person = newcomer()
    misbehave(given, DISCOVERY)
    const isGone = given.name === 'keys of another server'
    await stopped(
      t, given, await usher.logIn(id, fake, person), isGone ? 'PROVIDER_UNAVAILABLE' : 'PROVIDER_REJECTED'
    )
    fake.misbehave({})
    await worksAgain(t, given, () => usher.logIn(id, fake, person), person.email)
  })
})

t.test('16.5 what a login does not need of the configuration may be anything', async (t) => {
  const names = [
    'token_endpoint_auth_methods_supported', 'userinfo_endpoint', 'response_types_supported',
    'scopes_supported', 'code_challenge_methods_supported', 'end_session_endpoint',
  ]
  await withEach(t, (fake) => wrongMembers(discovered(fake), names, [null, '', 7, {}, []]), async (given) => {
    const { id, name, fake, usher } = given
    const person = newcomer()
    misbehave(given, DISCOVERY)
    const response = await usher.logIn(id, fake, person)
    t.equal(errorIn(response), null, name)
    if (errorIn(response) === null) t.equal((await usher.sessionOf(response)).user.email, person.email, name)
  })
})

t.test('16.5 a configuration that cannot be read again is used as it was', async (t) => {
  await withEach(t, { 'a failure': usual['a failure']!, 'a page': usual['a page']! }, async (given) => {
    const { id, name, fake, usher } = given
    const person = newcomer()
    await usher.sessionOf(await usher.logIn(id, fake, person))
    misbehave({ fake, answer: usual['a page']! }, '/token')
    await stopped(t, given, await usher.logIn(id, fake, person), 'PROVIDER_REJECTED')
    misbehave(given, DISCOVERY)
    fake.requests.length = 0
    // It is read at most every two seconds.
    for (let tries = 0; tries < TRIES && !fake.requests.includes(DISCOVERY); tries++) {
      await delay(PAUSE_MS)
      t.equal(errorIn(await usher.logIn(id, fake, person)), null, name)
    }
    t.ok(fake.requests.includes(DISCOVERY), `${name}: it was asked for`)
    t.equal(errorIn(await usher.logIn(id, fake, person)), null, `${name}: and the next login works`)
  })
})

t.test('16.5 what an issuer answers in place of its keys', async (t) => {
  const answers = ({ jwks: [key] }: FakeProvider): Record<string, Answer> => ({
    ...usual,
    ...cutOff(JSON.stringify({ keys: [key] })),
    ...wrongMembers({}, ['keys'], [null, '', 7, {}, [], [null], [7], [[]], [{}]]),
    ...Object.fromEntries(['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use'].map((name) =>
      [`a key whose ${name} is wrong`, body(JSON.stringify({ keys: [{ ...key, [name]: 'wrong' }] }))])),
    'a key that is cut off': body(JSON.stringify({ keys: [{ ...key, x: key!.x!.slice(0, 20) }] })),
    'another key with the same id': body(JSON.stringify({ keys: [{ ...key, x: key!.y, y: key!.x }] })),
    'an encrypted secret': body(JSON.stringify({ keys: [{ kty: 'oct', k: 'c2VjcmV0', kid: key!.kid, alg: 'HS256' }] })),
  })
  await withEach(t, answers, async (given) => {
    const { id, name, fake, usher } = given
    const person = newcomer()
    misbehave(given, '/jwks')
    await stopped(t, given, await usher.logIn(id, fake, person), codeOf(given))
    await stopped(t, given, await usher.logIn(id, fake, person), codeOf(given))
    t.equal(await countIdentities(given), 0, `${name}: nobody got an account`)
    fake.misbehave({})
    await worksAgain(t, given, () => usher.logIn(id, fake, person), person.email)
  })
})

t.test('16.5 what an issuer answers in place of tokens', async (t) => {
  const right = { access_token: 'access', token_type: 'Bearer', expires_in: 3600, id_token: 'e30.e30.e30' }
  const answers = {
    ...usual,
    ...cutOff(JSON.stringify(right)),
    ...wrongMembers(right, ['access_token', 'id_token', 'token_type'], [null, '', 7, true, [], {}]),
    'no ID token': body(JSON.stringify({ access_token: 'access', token_type: 'Bearer' })),
    'a deep member': body(`{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
  }
  await withEach(t, answers, async (given) => {
    const { id, name, fake, usher } = given
    const person = newcomer()
    misbehave(given, '/token')
    await stopped(t, given, await usher.logIn(id, fake, person), codeOf(given))
    t.equal(await countIdentities(given), 0, `${name}: nobody got an account`)
    fake.misbehave({})
    await worksAgain(t, given, () => usher.logIn(id, fake, person), person.email)
  })
})

t.test('16.5 what an issuer answers in place of what it knows of a user', async (t) => {
  const right = { sub: 'somebody', email: 'somebody@example.com', email_verified: true, name: 'Somebody' }
  const answers = {
    ...usual,
    ...cutOff(JSON.stringify(right)),
    ...wrongMembers(right, ['sub'], [undefined, null, '', 7, true, [], {}, 'somebody']),
    'a token of nobody': body('e30.e30.', 'application/jwt'),
    'half a token': body('eyJhbGciOiJFUzI1NiJ9.eyJzd', 'application/jwt'),
    'a deep member': body(`{"sub":"somebody","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
  }
  await withEach(t, answers, async (given) => {
    const { id, name, fake, usher } = given
    const metadata = { userinfo_endpoint: `${fake.issuer}/userinfo` }
    const [person, later] = [newcomer(), newcomer()]
    fake.misbehave({ metadata })
    const first = await usher.sessionOf(await usher.logIn(id, fake, person))
    misbehave(given, '/userinfo', { metadata })
    const again = await usher.sessionOf(await usher.logIn(id, fake, { sub: person.sub }))
    t.strictSame([again.id, again.user.email], [first.id, person.email], `${name}: who has the identity goes on`)
    const nameless = await usher.sessionOf(await usher.logIn(id, fake, { ...later, name: undefined }))
    t.equal(nameless.user.email, later.email, `${name}: who lacks a name only goes on`)
    const code = given.answer.isOutage ? 'PROVIDER_UNAVAILABLE' : 'PROVIDER_USERINFO_REJECTED'
    const another = newcomer()
    await stopped(t, given, await usher.logIn(id, fake, { sub: another.sub }), code)
    t.equal(await countIdentities(given), 2, `${name}: nobody else got an account`)
    const info = { ...given, answer: body(JSON.stringify(another)) }
    misbehave(info, '/userinfo', { metadata })
    await worksAgain(t, given, () => usher.logIn(id, fake, { sub: another.sub }), another.email)
  })
})

const [GITHUB_TOKEN, GITHUB_USER, GITHUB_EMAILS] = ['/login/oauth/access_token', '/api/v3/user', '/api/v3/user/emails']

/** What a GitHub Enterprise Server answers about a user. */
const githubOf = (id: number, email: string): Record<string, string> => ({
  [GITHUB_TOKEN]: JSON.stringify({ access_token: 'gho_token', token_type: 'bearer', scope: 'read:user' }),
  [GITHUB_USER]: JSON.stringify({ id, login: 'ada', name: null }),
  [GITHUB_EMAILS]: JSON.stringify([{ email, primary: true, verified: true, visibility: null }]),
})

const answerOf = (documents: Record<string, string>) => (path: string, response: ServerResponse): boolean =>
  documents[path] !== undefined && Boolean(response.writeHead(200, json).end(documents[path]))

const address = () => `${randomUUID()}@example.com`

for (const [path, what, more] of [
  [GITHUB_TOKEN, 'tokens', wrongMembers({ token_type: 'bearer' }, ['access_token'], [undefined, null, '', 7, [], {}])],
  [GITHUB_USER, 'a user', wrongMembers({ login: 'ada' }, ['id'], [undefined, null, '', '7', 7.5, -1, 0, 2 ** 60, true, [], [7], {}])],
] as const) {
  t.test(`16.5 what GitHub answers in place of ${what}`, async (t) => {
    await withEach(t, { ...usual, ...cutOff(githubOf(7, address())[path]!), ...more }, async (given) => {
      const { id, name, fake, usher } = given
      const email = address()
      const rest = { answer: answerOf(githubOf(7, email)) }
      misbehave(given, path, rest)
      await stopped(t, given, await usher.logIn(id, fake), codeOf(given))
      t.equal(await countIdentities(given), 0, `${name}: nobody got an account`)
      fake.misbehave(rest)
      await worksAgain(t, given, () => usher.logIn(id, fake), email)
    }, { preset: 'github', name: undefined, trustEmail: undefined })
  })
}

t.test('16.5 what GitHub answers in place of addresses', async (t) => {
  await withEach(t, { ...usual, ...cutOff(githubOf(7, address())[GITHUB_EMAILS]!) }, async (given) => {
    const { id, name, fake, usher } = given
    const [first, second] = [address(), address()]
    fake.misbehave({ answer: answerOf(githubOf(7, first)) })
    const user = await usher.sessionOf(await usher.logIn(id, fake))
    misbehave(given, GITHUB_EMAILS, { answer: answerOf(githubOf(7, first)) })
    t.equal((await usher.sessionOf(await usher.logIn(id, fake))).id, user.id, `${name}: who has the identity goes on`)
    misbehave(given, GITHUB_EMAILS, { answer: answerOf(githubOf(8, second)) })
    const rejected = name === 'an array' ? 'PROVIDER_EMAIL_MISSING' : 'PROVIDER_USERINFO_REJECTED'
    await stopped(t, given, await usher.logIn(id, fake), given.answer.isOutage ? 'PROVIDER_UNAVAILABLE' : rejected)
    t.equal(await countIdentities(given), 1, `${name}: nobody else got an account`)
    fake.misbehave({ answer: answerOf(githubOf(8, second)) })
    await worksAgain(t, given, () => usher.logIn(id, fake), second)
  }, { preset: 'github', name: undefined, trustEmail: undefined })
})

// The clients of long-run.ts, in a process of their own: users who do everything that the API offers, at a fixed rate.
// As many posts, users, uploads and sessions are created as deleted, so that what grows nevertheless is a leak.
import { once } from 'node:events'
import { Agent, request, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { percentile } from './report.ts'
import { given, tell } from './sockets.ts'

export interface LongRunGiven {
  url: string
  minutes: number
  /** Requests per second, of all clients together. */
  rate: number
  admin: { email: string, password: string }
}

export interface LongRunTold {
  requests: number
  p50: number
  p99: number
  /** Milliseconds of the slowest request of each action. */
  slowest: Record<string, number>
  /** Messages that subscribers have received. */
  messages: number
  /** How often each action was done. */
  actions: Record<string, number>
  /** How often each action got a status that it does not expect, or no response, with an example. */
  failures: Record<string, { count: number, example: string }>
  /** Actions that were left out because too many requests waited for responses. */
  left: number
}

interface Account {
  readonly email: string
  readonly password: string
  /** Each user has the own address, so that each has the own limits. */
  readonly address: string
  id: string
  token: string
  cookie: string
  /** When the token is renewed. */
  renewAt: number
  /** Whether an action uses it. */
  busy: boolean
}

interface Init {
  account?: Account
  address?: string
  cookie?: string
  headers?: Record<string, string | number>
  json?: unknown
  body?: Buffer
}

interface Answer { status: number, headers: IncomingHttpHeaders, json (): any, text: string }

const ACCOUNTS = 200
const LANES = 32
const WAITING = 400
const SOCKETS = 8
const STREAMS = 4
const POSTS = 2000
const EXTRA_USERS = 200
const UPLOADS = 200
const RENEW_MS = 120_000
const REQUESTS_PER_CONNECTION = 500
const TIMEOUT_MS = 10_000
const TICK_MS = 50
const FILE_BYTES = [100, 4096, 65_536, 262_144]

const { url, minutes, rate, admin: adminLogin } = given<LongRunGiven>()
const told: LongRunTold =
  { requests: 0, p50: 0, p99: 0, slowest: {}, messages: 0, actions: {}, failures: {}, left: 0 }
// The latest latencies, which are enough for percentiles.
const latencies = new Float64Array(100_000)
const posts: { id: string, author: Account }[] = []
const uploads: { id: string, owner: Account }[] = []
const extraUsers: string[] = []
const tags = new Map<string, string>()
const accounts: Account[] = []
let serial = 0
let inFlight = 0

class Lane {
  #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #sent = 0
  #queue: Promise<unknown> = Promise.resolve()

  /** Sends a request when the previous one of this connection is answered. */
  send (method: string, path: string, init: Init): Promise<Answer> {
    const answer = this.#queue.then(() => this.#send(method, path, init))
    this.#queue = answer.catch(() => {})
    return answer
  }

  async #send (method: string, path: string, { account, address, cookie, headers, json, body }: Init): Promise<Answer> {
    // Clients come and go.
    if (++this.#sent % REQUESTS_PER_CONNECTION === 0) {
      this.#agent.destroy()
      this.#agent = new Agent({ keepAlive: true, maxSockets: 1 })
    }
    const payload = json === undefined ? body : Buffer.from(JSON.stringify(json))
    const from = address ?? account?.address
    const outgoing = request(`${url}${path}`, {
      method,
      agent: this.#agent,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        ...from !== undefined && { 'x-forwarded-for': from },
        ...account && { authorization: `Bearer ${account.token}` },
        ...cookie !== undefined && { cookie },
        ...json !== undefined && { 'content-type': 'application/json' },
        ...payload && { 'content-length': payload.length },
        ...headers,
      },
    })
    const since = performance.now()
    outgoing.end(payload)
    const [response] = await once(outgoing, 'response')
    const bytes = await buffer(response)
    latencies[told.requests++ % latencies.length] = performance.now() - since
    const text = bytes.toString('utf8', 0, 2000)
    return { status: response.statusCode, headers: response.headers, text, json: () => JSON.parse(bytes.toString()) }
  }
}

const lanes = Array.from({ length: LANES }, () => new Lane())
const send = (method: string, path: string, init: Init = {}) => lanes[serial++ % LANES]!.send(method, path, init)

class Unexpected extends Error {}

function expect (answer: Answer, ...statuses: number[]): Answer {
  if (!statuses.includes(answer.status)) throw new Unexpected(`${answer.status} ${answer.text.slice(0, 300)}`)
  return answer
}

async function graphql (
  account: Account | undefined, query: string, variables: object = {}, headers: Record<string, string> = {}
): Promise<any> {
  const answer = await send('POST', '/graphql', { ...account && { account }, json: { query, variables }, headers })
  const result = expect(answer, 200).json()
  if (result.errors) throw new Unexpected(`200 ${JSON.stringify(result.errors).slice(0, 300)}`)
  return result.data
}

const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(Math.random() * items.length)]!

function takeAny<Item> (items: Item[]): Item | undefined {
  const index = Math.floor(Math.random() * items.length)
  const item = items[index]
  const last = items.pop()
  if (last !== undefined && index < items.length) items[index] = last
  return item
}

// Whether to create, rather than to delete: there are about as many as wanted.
const shouldCreate = (items: readonly unknown[], wanted: number) => Math.random() * 2 * wanted > items.length

/** Runs an action as a user with a valid token. No other action uses that user meanwhile. */
async function withAccount (run: (account: Account) => Promise<void>): Promise<void> {
  const account = pick(accounts)
  if (account.busy) return
  account.busy = true
  try {
    if (Date.now() > account.renewAt) await refresh(account)
    await run(account)
  } finally {
    account.busy = false
  }
}

function accept (account: Account, answer: Answer): void {
  const { token, user } = answer.json()
  account.id = user.id
  account.token = token
  account.cookie = answer.headers['set-cookie']![0]!.split(';')[0]!
  account.renewAt = Date.now() + RENEW_MS * (0.5 + Math.random())
}

async function logIn (account: Account, cookie?: string): Promise<void> {
  const { email, password, address } = account
  const answer = await send('POST', '/api/auth/login', {
    address, ...cookie !== undefined && { cookie }, json: { email, password },
  })
  accept(account, expect(answer, 200))
}

async function refresh (account: Account): Promise<void> {
  const { address, cookie } = account
  accept(account, expect(await send('POST', '/api/auth/refresh', { address, cookie }), 200))
}

async function formOf (size: number): Promise<{ body: Buffer, headers: Record<string, string> }> {
  const form = new FormData()
  form.set('description', 'A long run')
  form.set('file', new Blob([Buffer.alloc(size, `usher ${serial} `)]), 'file.bin')
  const encoded = new Response(form)
  return {
    body: Buffer.from(await encoded.arrayBuffer()), headers: { 'content-type': encoded.headers.get('content-type')! },
  }
}

const tus = { 'tus-resumable': '1.0.0' }
const OFFSET = 'application/offset+octet-stream'
const CREATE = 'mutation ($title: String!) { createPost(input: { title: $title, content: "Words of a post" }) { id } }'
const UPDATE = 'mutation ($id: ID!, $title: String!) { updatePost(id: $id, input: { title: $title }) { id etag } }'
const DELETE = 'mutation ($id: ID!) { deletePost(id: $id) }'
const PAGE = '{ posts(first: 20) { nodes { id title content author { id name } } pageInfo { endCursor } } }'
const AUTHORS = '{ users(first: 10) { nodes { id name posts(first: 5) { id title } } } }'

// The weights of actions, and what they do.
const actions: Record<string, [weight: number, run: () => Promise<void>]> = {
  'read a user': [25, async () => {
    const { id, address } = pick(accounts)
    const tag = Math.random() < 0.5 ? tags.get(id) : undefined
    const headers: Record<string, string> = tag === undefined ? {} : { 'if-none-match': tag }
    const answer = expect(await send('GET', `/api/users/${id}`, { address, headers }), 200, 304)
    tags.set(id, String(answer.headers.etag))
  }],
  'list users': [6, async () => {
    const query = pick(['limit=20', 'limit=100', 'q=long', 'sort=name&limit=20', 'role=admin'])
    expect(await send('GET', `/api/users?${query}`, { address: pick(accounts).address }), 200)
  }],
  'a page of posts': [12, async () => { await graphql(undefined, PAGE) }],
  'posts of users': [3, async () => { await graphql(undefined, AUTHORS) }],
  'the own record': [12, () => withAccount(async (account) => {
    expect(await send('GET', '/api/protected', { account }), 200)
  })],
  'the account log': [1, () => withAccount(async (account) => {
    expect(await send('GET', '/api/audit?limit=20', { account }), 200)
  })],
  'the sessions': [1, () => withAccount(async (account) => {
    expect(await send('GET', '/api/auth/sessions', { account }), 200)
  })],
  'create or delete a post': [16, async () => {
    if (shouldCreate(posts, POSTS)) {
      await withAccount(async (account) => {
        const headers: Record<string, string> = Math.random() < 0.5 ? { 'idempotency-key': crypto.randomUUID() } : {}
        const variables = { title: `Long run ${serial}` }
        const { createPost: { id } } = await graphql(account, CREATE, variables, headers)
        if (headers['idempotency-key'] && Math.random() < 0.2) await graphql(account, CREATE, variables, headers)
        posts.push({ id, author: account })
      })
    } else {
      const post = takeAny(posts)!
      if (post.author.busy) posts.push(post)
      else await withOwner(post.author, async () => { await graphql(post.author, DELETE, { id: post.id }) })
    }
  }],
  'update a post': [4, async () => {
    const post = takeAny(posts)
    if (!post) return
    if (!post.author.busy) {
      await withOwner(post.author, async () => {
        await graphql(post.author, UPDATE, { id: post.id, title: `Changed ${serial}` })
      })
    }
    posts.push(post)
  }],
  'change the own name': [2, () => withAccount(async (account) => {
    expect(await send('PATCH', `/api/users/${account.id}`, { account, json: { name: `Long ${serial}` } }), 200)
  })],
  'create or delete a user': [2, async () => {
    const account = await freshAdmin()
    if (shouldCreate(extraUsers, EXTRA_USERS)) {
      const answer = await send('POST', '/api/users', {
        account,
        headers: { 'idempotency-key': crypto.randomUUID() },
        json: { name: 'Longer', email: `extra-${crypto.randomUUID()}@example.com` },
      })
      extraUsers.push(expect(answer, 201).json().id)
    } else {
      expect(await send('DELETE', `/api/users/${takeAny(extraUsers)}`, { account }), 204)
    }
  }],
  'log in again': [0.4, () => withAccount((account) => logIn(account, account.cookie))],
  'log out and in': [0.4, () => withAccount(async (account) => {
    expect(await send('POST', '/api/auth/logout', { account, cookie: account.cookie }), 204)
    await logIn(account)
  })],
  // The former session expires.
  'log in and leave': [0.3, () => withAccount((account) => logIn(account))],
  'guess a password': [0.3, async () => {
    const address = `11.${byte()}.${byte()}.${byte()}`
    const email = Math.random() < 0.5 ? `nobody-${serial}@example.com` : pick(accounts).email
    expect(await send('POST', '/api/auth/login', { address, json: { email, password: 'a wrong password' } }), 401, 429)
  }],
  'ask for a link': [0.2, async () => {
    const { email, address } = pick(accounts)
    expect(await send('POST', '/api/auth/password-reset', { address, json: { email } }), 202, 429)
  }],
  refresh: [3, () => withAccount(refresh)],
  'upload or delete a file': [3, async () => {
    if (shouldCreate(uploads, UPLOADS)) {
      await withAccount(async (account) => {
        const form = await formOf(pick(FILE_BYTES))
        const headers = Math.random() < 0.5 ? { ...form.headers, 'idempotency-key': crypto.randomUUID() } : form.headers
        const answer = expect(await send('POST', '/api/uploads', { account, body: form.body, headers }), 200)
        uploads.push({ id: answer.json().id, owner: account })
      })
    } else {
      const upload = takeAny(uploads)!
      if (upload.owner.busy) uploads.push(upload)
      else {
        await withOwner(upload.owner, async () => {
          expect(await send('DELETE', `/api/uploads/${upload.id}`, { account: upload.owner }), 204)
        })
      }
    }
  }],
  'download a file': [2, async () => {
    const upload = takeAny(uploads)
    if (!upload) return
    expect(await send('GET', `/api/uploads/${upload.id}`), 200)
    uploads.push(upload)
  }],
  'break off an upload': [0.5, () => withAccount(breakOff)],
  'upload in parts': [0.5, () => withAccount(uploadInParts)],
}

const byte = () => Math.floor(Math.random() * 256)

async function withOwner (account: Account, run: () => Promise<void>): Promise<void> {
  account.busy = true
  try {
    if (Date.now() > account.renewAt) await refresh(account)
    await run()
  } finally {
    account.busy = false
  }
}

// Sends the first half of a file and ends the connection.
async function breakOff (account: Account): Promise<void> {
  const { body, headers } = await formOf(FILE_BYTES[2]!)
  const outgoing = request(`${url}/api/uploads`, {
    method: 'POST',
    agent: false,
    headers: {
      ...headers, 'content-length': body.length, authorization: `Bearer ${account.token}`, 'x-forwarded-for': account.address,
    },
  })
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  // That the connection ends is the intention, so its error is none.
  outgoing.on('error', () => {}).on('close', resolve)
  await new Promise((resolve) => outgoing.write(body.subarray(0, body.length / 2), () => resolve(undefined)))
  await delay(20)
  outgoing.destroy()
  await closed
}

// Every other upload is given up after its first half.
async function uploadInParts (account: Account): Promise<void> {
  const bytes = Buffer.alloc(FILE_BYTES[2]!, 'part ')
  const half = bytes.length / 2
  const created = expect(
    await send('POST', '/api/uploads/resumable', { account, headers: { ...tus, 'upload-length': bytes.length } }), 201
  )
  const path = new URL(String(created.headers.location), url).pathname
  const append = (offset: number) => send('PATCH', path, {
    account,
    body: bytes.subarray(offset, offset + half),
    headers: { ...tus, 'upload-offset': offset, 'content-type': OFFSET },
  })
  expect(await append(0), 204)
  if (serial % 2 === 0) return void expect(await send('DELETE', path, { account, headers: tus }), 204)
  const { id } = expect(await append(half), 200).json()
  uploads.push({ id, owner: account })
}

let adminAccount: Account

async function freshAdmin (): Promise<Account> {
  if (!adminAccount.busy && Date.now() > adminAccount.renewAt) await withOwner(adminAccount, async () => {})
  return adminAccount
}

async function prepare (): Promise<void> {
  adminAccount = newAccount(adminLogin, '12.0.0.1')
  await logIn(adminAccount)
  for (let index = 0; index < ACCOUNTS; index++) {
    const login = { email: `long-${index}@example.com`, password: 'an unusual phrase' }
    expect(await send('POST', '/api/users', { account: adminAccount, json: { name: `Long ${index}`, ...login } }), 201)
    // Each in a network of its own.
    const account = newAccount(login, `10.${index}.0.1`)
    await logIn(account)
    accounts.push(account)
  }
}

const newAccount = (login: { email: string, password: string }, address: string): Account =>
  ({ ...login, address, id: '', token: '', cookie: '', renewAt: 0, busy: false })

/** Subscribes for some seconds, again and again, with a socket. */
async function comeAndGo (signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const account = pick(accounts)
    const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
      headers: { 'x-forwarded-for': account.address },
    })
    try {
      await once(socket, 'open')
      socket.send('{"type":"connection_init"}')
      await once(socket, 'message')
      socket.on('message', () => { told.messages++ })
      const query = pick([
        'subscription { postCreated { id title author { name } } }',
        `subscription { postCreated(authorId: "${account.id}") { id title } }`,
      ])
      socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query } }))
      await delay(2000 + Math.random() * 20_000, undefined, { signal }).catch(() => {})
      // Every other client just disappears.
      if (Math.random() < 0.5) socket.close()
      else socket.terminate()
      if (socket.readyState !== WebSocket.CLOSED) await once(socket, 'close')
    } catch (error) {
      fail('subscribe with a socket', error as Error)
      await delay(1000)
    }
  }
}

/** Subscribes for some seconds, again and again, with an event stream. */
async function stream (signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const leaving = new AbortController()
    const left = delay(2000 + Math.random() * 20_000, undefined, { signal }).catch(() => {}).then(() => leaving.abort())
    try {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        signal: leaving.signal,
        headers: {
          accept: 'text/event-stream', 'content-type': 'application/json', 'x-forwarded-for': pick(accounts).address,
        },
        body: JSON.stringify({ query: 'subscription { postCreated { id title } }' }),
      })
      if (response.status !== 200) throw new Unexpected(`${response.status} ${await response.text()}`)
      for await (const part of response.body!) if (part.length > 0) told.messages++
    } catch (error) {
      if (!leaving.signal.aborted) fail('subscribe with an event stream', error as Error)
    }
    await left
  }
}

function fail (action: string, error: Error): void {
  const what = `${action}: ${error instanceof Unexpected ? error.message.slice(0, 3) : error.name}`
  const known = (told.failures[what] ??= { count: 0, example: error.message })
  known.count++
}

async function act (name: string, run: () => Promise<void>): Promise<void> {
  const since = performance.now()
  inFlight++
  try {
    await run()
    told.actions[name] = (told.actions[name] ?? 0) + 1
  } catch (error) {
    fail(name, error as Error)
  } finally {
    inFlight--
    told.slowest[name] = Math.max(told.slowest[name] ?? 0, Math.round(performance.now() - since))
  }
}

function chooser (): () => string {
  const names = Object.entries(actions).flatMap(([name, [weight]]) => Array.from({ length: weight * 10 }, () => name))
  return () => pick(names)
}

await prepare()
told.requests = 0
const choose = chooser()
const over = new AbortController()
const subscribers = [
  ...Array.from({ length: SOCKETS }, () => comeAndGo(over.signal)),
  ...Array.from({ length: STREAMS }, () => stream(over.signal)),
]
const start = performance.now()
const running = new Set<Promise<void>>()
// An action is about a request. What is due is sent whether or not earlier requests were answered.
for (let started = 0; performance.now() - start < minutes * 60_000;) {
  for (const due = (performance.now() - start) / 1000 * rate; started < due; started++) {
    if (inFlight > WAITING) {
      told.left++
      continue
    }
    const name = choose()
    const action = act(name, actions[name]![1]).finally(() => running.delete(action))
    running.add(action)
  }
  await delay(TICK_MS)
}
over.abort()
await Promise.all([...running, ...subscribers])
const measured = latencies.subarray(0, Math.min(told.requests, latencies.length))
told.p50 = percentile(measured, 50)
told.p99 = percentile(measured, 99)
tell(told)

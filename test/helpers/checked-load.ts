import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'

/** Clients whose answers are all compared with what they must be. */
export interface CheckedLoad {
  /** How many answers of each kind were right. */
  readonly right: Record<string, number>
  /** Answers that were not what they must be, or that did not come within a minute. */
  readonly wrong: string[]
  /** How many requests a busy node has refused with 503. */
  readonly refused: number
  /** Those that were refused so late that the answer to a statement must have been lost. */
  readonly lost: string[]
  stop (): Promise<void>
}

interface User { id: string, email: string, name: string, etag: string }
interface Answer { status: number, etag: string | null, body: any }

const DEADLINE_MS = 60_000
// After eleven seconds a node gives up a statement that was not answered.
const LOST_MS = 10_500
const PAUSE_MS = 20
const SHOWN = 300
const USERS_PER_CLIENT = 20
const CREATE_POST =
  'mutation ($title: String!, $content: String!) { createPost(input: { title: $title, content: $content }) { id title content } }'
const READ_POST = 'query ($id: ID!) { post(id: $id) { id title content } }'
const READ_USER = 'query ($id: ID!) { user(id: $id) { id name email etag } }'

/**
 * Starts clients that create, change, read, list and delete users, write and read posts and uploads, and look at their
 * own account, on all nodes in turn. Only one client changes a user, so it knows what each read must return, with which
 * version. Every value occurs once, so an answer that belongs to another request is recognised.
 */
export function startCheckedLoad (
  nodes: readonly { url: string }[], { authorization, adminId }: { authorization: string, adminId: string },
  clients = 30
): CheckedLoad {
  const [right, wrong, lost]: [Record<string, number>, string[], string[]] = [{}, [], []]
  let refused = 0
  const stopping = new AbortController()
  const works = [rename, remove, read, read, read, readByGraphql, readByGraphql, list, readProtected, post, upload]
  let [number, next] = [0, 0]

  // Returns undefined if the answer is a refusal, or not what it must be.
  async function request (
    kind: string, path: string, init: RequestInit, isRight: (answer: Answer) => boolean
  ): Promise<Answer | undefined> {
    await delay(Math.random() * PAUSE_MS)
    const { url } = nodes[next++ % nodes.length]!
    const headers = { authorization, ...typeof init.body === 'string' && { 'content-type': 'application/json' } }
    const sent = performance.now()
    try {
      const response = await fetch(`${url}${path}`, { ...init, headers, signal: AbortSignal.timeout(DEADLINE_MS) })
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.startsWith('application/json')
      const answer = {
        status: response.status, etag: response.headers.get('etag'), body: isJson ? JSON.parse(text) : text,
      }
      const code = answer.body?.code ?? answer.body?.errors?.[0]?.extensions?.code
      if (code === 'DATABASE_UNAVAILABLE' || code === 'OVERLOADED') {
        refused++
        if (performance.now() - sent > LOST_MS) {
          lost.push(`${new Date().toISOString()} ${kind} ${path}: ${text.slice(0, SHOWN)}`)
        }
      } else if (!isRight(answer)) {
        wrong.push(`${kind} ${path}: ${response.status} ${text.slice(0, SHOWN)}`)
      } else {
        right[kind] = (right[kind] ?? 0) + 1
        return answer
      }
    } catch (error) {
      wrong.push(`${kind} ${path}: ${(error as Error).message}`)
    }
  }

  const json = (method: string, body: object): RequestInit => ({ method, body: JSON.stringify(body) })
  const graphql = (kind: string, query: string, variables: object, isRight: (data: any) => boolean) =>
    request(kind, '/graphql', json('POST', { query, variables }), ({ status, body }) =>
      status === 200 && body.errors === undefined && isRight(body.data))
  const isUser = (user: User) => ({ status, etag, body }: Answer): boolean =>
    status === 200 && body.id === user.id && body.name === user.name && body.email === user.email && etag === user.etag

  async function client (label: string): Promise<void> {
    const users: User[] = []
    while (!stopping.signal.aborted) {
      const user = users[Math.floor(Math.random() * users.length)]
      if (!user || users.length < USERS_PER_CLIENT) await create(label, users)
      else await works[Math.floor(Math.random() * works.length)]!(user, users)
    }
  }

  async function create (label: string, users: User[]): Promise<void> {
    const [name, email] = [`${label} ${++number}`, `${label}.${number}@example.com`]
    const answer = await request('create', '/api/users', json('POST', { name, email }), ({ status, body }) =>
      status === 201 && body.name === name && body.email === email)
    if (answer) users.push({ id: answer.body.id, name, email, etag: answer.etag! })
  }

  async function rename (user: User, users: User[]): Promise<void> {
    const changed = { name: `${user.name.split(' ')[0]} ${++number}`, email: user.email }
    const answer = await request('rename', `/api/users/${user.id}`, json('PUT', changed), ({ status, etag, body }) =>
      status === 200 && body.id === user.id && body.name === changed.name &&
      body.email === user.email && etag !== user.etag)
    // Whether a refused change took effect is not known.
    if (answer) Object.assign(user, changed, { etag: answer.etag })
    else users.splice(users.indexOf(user), 1)
  }

  async function remove (user: User, users: User[]): Promise<void> {
    users.splice(users.indexOf(user), 1)
    const path = `/api/users/${user.id}`
    const answer = await request('delete', path, { method: 'DELETE' }, ({ status }) => status === 204)
    if (answer) {
      await request(
        'read a deleted user', path, {}, ({ status, body }) => status === 404 && body.code === 'USER_NOT_FOUND'
      )
    }
  }

  function read (user: User) {
    return request('read', `/api/users/${user.id}`, {}, isUser(user))
  }

  function readByGraphql (user: User) {
    return graphql(
      'read by GraphQL', READ_USER, { id: user.id }, ({ user: found }) => isDeepStrictEqual({ ...found }, { ...user })
    )
  }

  function readProtected () {
    return request('protected', '/api/protected', {}, ({ status, body }) => status === 200 && body.user.id === adminId)
  }

  // The label of a client is in the names and in the addresses of its users.
  function list () {
    return request('list', '/api/users?limit=50', {}, ({ status, body }) => status === 200 && body.length <= 50 &&
    new Set(body.map(({ id }: User) => id)).size === body.length &&
    body.every(({ id, name, email }: User) => id === adminId || name.split(' ')[0] === email.split('.')[0]))
  }

  async function post (): Promise<void> {
    const written = { title: `Title ${++number}`, content: `Content ${number}` }
    const isPost = (id: string | undefined) => (found: any) =>
      isDeepStrictEqual(found, { id: id ?? found.id, ...written })
    const answer =
      await graphql('create a post', CREATE_POST, written, ({ createPost }) => isPost(undefined)(createPost))
    const id = answer?.body.data.createPost.id
    if (id) await graphql('read a post', READ_POST, { id }, ({ post }) => isPost(id)(post))
  }

  async function upload (): Promise<void> {
    const bytes = `Bytes ${++number}`
    const body = new FormData()
    body.set('description', bytes)
    body.set('file', new File([bytes], `${number}.txt`, { type: 'text/plain' }))
    const answer = await request('upload', '/api/uploads', { method: 'POST', body }, ({ status, body }) =>
      status === 200 && body.filename === `${bytes.slice(6)}.txt` && body.size === bytes.length)
    if (answer) {
      await request('download', new URL(answer.body.fileUrl, 'http://x').pathname, {}, ({ status, body }) =>
        status === 200 && body === bytes)
    }
  }

  const ended = Promise.all(Array.from({ length: clients }, (_, index) => client(`c${index}`)))
  return {
    right,
    wrong,
    lost,
    get refused () { return refused },

    async stop () {
      stopping.abort()
      await ended
    },
  }
}

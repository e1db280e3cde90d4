import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { LoggedIn, TestUsher } from './app.ts'

/** A GraphQL response. The type of `data` depends on the test's query. */
export interface Answer {
  data?: any
  errors?: { message: string, path?: (string | number)[], extensions: { code: string, errors?: string[] } }[]
}

/** Posts a body to /graphql and returns the response. Throws if the status is not 200 (contract 7.1). */
export async function post (usher: TestUsher, body: object, user?: LoggedIn): Promise<Answer> {
  const response = await usher.inject('POST', '/graphql', { payload: body, ...user && { headers: user.headers } })
  if (response.statusCode !== 200) throw new Error(`graphql: ${response.statusCode} ${response.body}`)
  return response.json()
}

/** Creates a post and returns its id. */
export async function createPost (usher: TestUsher, user: LoggedIn, title = 'A post'): Promise<string> {
  const mutation = 'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { id } }'
  const { data, errors } = await post(usher, { query: mutation, variables: { title } }, user)
  if (errors) throw new Error(JSON.stringify(errors))
  return data.createPost.id
}

/** Returns the host and port of the app. The first call makes it listen on a free port. */
export async function hostOf ({ app }: Pick<TestUsher, 'app'>): Promise<string> {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' })
  return `127.0.0.1:${(app.server.address() as AddressInfo).port}`
}

export const protocols = ['graphql-transport-ws', 'graphql-ws'] as const
export type Protocol = typeof protocols[number]

export const words = {
  'graphql-transport-ws': { start: 'subscribe', stop: 'complete', data: 'next' },
  'graphql-ws': { start: 'start', stop: 'stop', data: 'data' },
}

interface Message { type: string, id?: string, payload?: Answer & Answer['errors'] }

/** A WebSocket connection that speaks one of the two GraphQL protocols. */
export class TestSocket {
  readonly words: typeof words[Protocol]
  readonly socket: WebSocket
  /** Resolves with the close code that the server sent. */
  readonly closed: Promise<number>
  readonly #arrived: Message[] = []
  #wake = () => {}

  constructor (socket: WebSocket, protocol: Protocol) {
    this.words = words[protocol]
    this.socket = socket
    this.closed = once(socket, 'close').then(([code]) => code)
    socket.on('error', () => {})
    socket.on('message', (data) => {
      this.#arrived.push(JSON.parse(String(data)))
      this.#wake()
    })
  }

  send (message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  start (id: string, query: string, rest: object = {}): void {
    this.send({ type: this.words.start, id, payload: { query, ...rest } })
  }

  stop (id: string): void {
    this.send({ type: this.words.stop, id })
  }

  /** Returns the next message that has not been returned yet. Rejects if the socket closes before it arrives. */
  async next (): Promise<Message> {
    while (this.#arrived.length === 0) {
      await this.whileOpen('the message', new Promise<void>((resolve) => { this.#wake = resolve }))
    }
    return this.#arrived.shift()!
  }

  /** Waits for a promise. Rejects if the socket closes before. */
  async whileOpen (what: string, promise: Promise<unknown>): Promise<void> {
    const closed = this.closed.then((code) => {
      if (this.#arrived.length === 0) throw new Error(`the socket was closed with ${code} before ${what}`)
    })
    await Promise.race([promise, closed])
  }

  /** Sends `connection_init` and waits for the acknowledgement. */
  async init (payload?: object): Promise<this> {
    this.send({ type: 'connection_init', payload })
    const { type } = await this.next()
    if (type !== 'connection_ack') throw new Error(`init: ${type}`)
    return this
  }

  /** Executes a query or mutation and returns its response. */
  async run (query: string, rest: object = {}): Promise<Answer> {
    this.start('run', query, rest)
    const { type, payload } = await this.next()
    if (type === 'error') return { errors: payload as unknown as NonNullable<Answer['errors']> }
    await this.next()
    return payload!
  }

  /** Waits until the server has handled everything that was sent so far. */
  async settle (): Promise<void> {
    await this.run('{ __typename }')
  }
}

/** Opens a socket to an app or to a node. It is closed when the test ends. The caller has to call `init`. */
export async function openSocket (
  t: Test, to: Pick<TestUsher, 'app' | 'prefix'> | { url: string },
  { protocol = 'graphql-transport-ws' as Protocol, path = '/graphql', headers = {} } = {}
): Promise<TestSocket> {
  const base = 'url' in to ? to.url.replace('http', 'ws') : `ws://${await hostOf(to)}${to.prefix}`
  const socket = new WebSocket(`${base}${path}`, protocol, { headers })
  t.teardown(() => socket.terminate())
  const open = new TestSocket(socket, protocol)
  await once(socket, 'open')
  return open
}

/** Returns the titles of the next `count` posts that a socket receives. */
export async function titles (socket: TestSocket, count: number): Promise<string[]> {
  const found: string[] = []
  while (found.length < count) found.push((await socket.next()).payload!.data.postCreated.title)
  return found
}

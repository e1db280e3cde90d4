import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { words, type Answer, type Protocol } from './graphql.ts'

const PAUSE_MS = 200

/** A subscription to the posts that follow a cursor. */
interface Subscription { query: string, variables: { authorId: string | undefined, after: string } }

/**
 * Passes all results of one connection to `take`. Resolves with the reason when the connection has closed or `hangUp`
 * was called.
 */
type Connect = (
  url: string, subscription: Subscription, take: (answer: Answer) => void, onOpen: (hangUp: () => void) => void
) => Promise<string>

const bySocket = (protocol: Protocol): Connect => (url, subscription, take, onOpen) => new Promise((resolve) => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, protocol)
  const { start, data } = words[protocol]
  onOpen(() => socket.terminate())
  let reason: string | undefined
  socket.on('open', () => socket.send('{"type":"connection_init"}'))
  socket.on('message', (text) => {
    const { type, payload } = JSON.parse(String(text))
    if (type === 'connection_ack') return socket.send(JSON.stringify({ type: start, id: '1', payload: subscription }))
    if (type === data) return take(payload)
    reason = `${type}: ${payload?.[0]?.extensions.code}`
    socket.close()
  })
  socket.on('error', (error: NodeJS.ErrnoException) => { reason ??= error.code ?? error.message })
  socket.on('close', (code) => resolve(reason ?? String(code)))
})

const byEvents = (method: 'GET' | 'POST', resume: 'header' |
  'argument'): Connect => (url, { query, variables: { after, ...others } }, take, onOpen) => new Promise((resolve) => {
  const variables = resume === 'header' ? others : { ...others, after }
  const path = method === 'POST'
    ? '/graphql'
    : `/graphql?${new URLSearchParams({ query, variables: JSON.stringify(variables) })}`
  const headers = {
    accept: 'text/event-stream',
    ...method === 'POST' && { 'content-type': 'application/json' },
    ...resume === 'header' && { 'last-event-id': after },
  }
  const asked = request(`${url}${path}`, { method, headers }, (response) => {
    let text = ''
    let reason = String(response.statusCode)
    response.setEncoding('utf8').on('data', (chunk: string) => {
      const blocks = `${text}${chunk}`.split('\n\n')
      text = blocks.pop()!
      for (const block of blocks) {
        const [, data] = /^data: (.+)$/m.exec(block) ?? []
        if (data) hear(JSON.parse(data), /^id: (.+)$/m.exec(block)?.[1])
      }
    })
    response.on('error', (error: NodeJS.ErrnoException) => { reason = error.code! }).on('close', () => resolve(reason))

    function hear (answer: Answer, id: string | undefined): void {
      if (!answer.data) reason = `error: ${answer.errors?.[0]?.extensions.code}`
      else if (id === answer.data.postCreated.cursor) take(answer)
      else reason = `the id ${id} of ${JSON.stringify(answer)}`
    }
  })
  onOpen(() => asked.destroy())
  asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code!))
  asked.end(method === 'POST' ? JSON.stringify({ query, variables }) : undefined)
})

/** The transports of a subscription, and the ways to resume from a cursor. */
export const ways: Readonly<Record<string, Connect>> = {
  'graphql-transport-ws': bySocket('graphql-transport-ws'),
  'graphql-ws': bySocket('graphql-ws'),
  'events by POST': byEvents('POST', 'argument'),
  'events by GET': byEvents('GET', 'header'),
}

export interface FollowerOptions {
  /** The URLs of the nodes. After each disconnect the follower connects to the next one. */
  urls: readonly string[]
  way: keyof typeof ways
  authorId?: string | undefined
  /** More fields to select from each post. */
  fields?: string
  /** The cursor to start after. */
  after: string
  /** The number of posts after which the follower moves to the next node by itself. */
  patience: number
}

/** A subscriber that wants every post and resumes from the last one it has received. */
export class Follower {
  /**
   * The cursors of the posts in the order in which they arrived. The first one is the cursor that the follower started
   * after.
   */
  readonly seen: string[]
  /** The reason for each disconnect. */
  readonly ends: string[] = []
  /** The longest time between two posts, in milliseconds. */
  longestSilence = 0
  readonly options: FollowerOptions
  #last = performance.now()
  #hangUp = () => {}
  #stopped = false
  #onSeen = () => {}
  #changesAt = 0

  constructor (options: FollowerOptions) {
    this.options = options
    this.seen = [options.after]
  }

  /** Subscribes again and again until `stop` is called. `first` is the index of the first node. */
  async run (first: number): Promise<void> {
    const { urls, way, authorId, fields = '', patience } = this.options
    const query =
      `subscription ($authorId: ID, $after: String) { postCreated(authorId: $authorId, after: $after) { cursor ${fields} } }`
    for (let turn = first; !this.#stopped; turn++) {
      const { length } = this.seen
      const after = this.seen.at(-1)!
      this.#changesAt = length + patience
      const reason = await ways[way]!(
        urls[turn % urls.length]!, { query, variables: { authorId, after } }, (answer) => this.#take(answer),
        (hangUp) => { this.#hangUp = hangUp }
      )
      this.ends.push(this.seen.length < this.#changesAt ? reason : 'changed')
      if (this.seen.length === length) await delay(PAUSE_MS)
    }
  }

  /** Resolves when the follower has received these posts. Call it only once at a time. */
  async sees (cursors: readonly string[]): Promise<void> {
    while (!cursors.every((cursor) => this.seen.includes(cursor))) {
      await new Promise<void>((resolve) => { this.#onSeen = resolve })
    }
  }

  stop (): void {
    this.#stopped = true
    this.#hangUp()
  }

  #take ({ data, errors }: Answer): void {
    this.seen.push(data?.postCreated.cursor ?? JSON.stringify(errors))
    this.longestSilence = Math.max(this.longestSilence, performance.now() - this.#last)
    this.#last = performance.now()
    this.#onSeen()
    if (this.seen.length === this.#changesAt) this.#hangUp()
  }
}

import type { Test } from 'tap'
import type { TestUsher } from './app.ts'
import { hostOf, type Answer } from './graphql.ts'

/** A server-sent event. */
export interface ServerEvent { event?: string, id?: string, data?: string, retry?: string, comment?: string }

/** The response to a request for server-sent events. */
export interface Events {
  response: Response
  /**
   * Returns the next event, skipping comments, or `undefined` at the end of the stream. Rejects if the connection
   * breaks.
   */
  next (): Promise<ServerEvent | undefined>
  /** Returns the GraphQL results in the next `count` events. */
  answers (count: number): Promise<Answer[]>
  /** Returns the next event or comment, or `undefined` at the end of the stream. */
  any (): Promise<ServerEvent | undefined>
  /** Disconnects. */
  abort (): void
}

/** Sends a request for server-sent events, by default to GraphQL. The connection is closed when the test ends. */
export async function openEvents (
  t: Test, usher: Pick<TestUsher, 'app' | 'prefix'>, init: RequestInit & { path?: string, query?: string } = {}
): Promise<Events> {
  const controller = new AbortController()
  t.teardown(() => controller.abort())
  const { path = '/graphql', query = '', headers, ...rest } = init
  const response = await fetch(`http://${await hostOf(usher)}${usher.prefix}${path}${query}`, {
    ...rest,
    signal: controller.signal,
    headers: { accept: 'text/event-stream', ...rest.body && { 'content-type': 'application/json' }, ...headers },
  })
  const events = read(response.body!)
  const any = async () => (await events.next()).value as ServerEvent | undefined
  const next = async (): Promise<ServerEvent | undefined> => {
    for (;;) {
      const event = await any()
      if (!event || event.data !== undefined) return event
    }
  }
  return {
    response,
    any,
    next,
    abort: () => controller.abort(),

    async answers (count) {
      const found: Answer[] = []
      while (found.length < count) found.push(JSON.parse((await next())!.data!))
      return found
    },
  }
}

async function * read (body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop()!
    for (const block of blocks) {
      yield Object.fromEntries(
        block.split('\n').map((line) => [line.split(':', 1)[0] || 'comment', line.replace(/^[^:]*: ?/, '')])
      )
    }
  }
}

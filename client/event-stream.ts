/** An event of a stream of server-sent events (HTML, 9.2). */
export interface ServerEvent {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string | undefined
}

/** Yields the events of a response. Returns when the server has ended it, and throws when the connection fails. */
export async function * readEvents (body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const blocks = `${text}${decoder.decode(value, { stream: true })}`.split('\n\n')
      // What follows the last empty line is not complete.
      text = blocks.pop()!
      for (const block of blocks) {
        yield { id: field(block, 'id'), event: field(block, 'event'), data: field(block, 'data') }
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const field = (block: string, name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]

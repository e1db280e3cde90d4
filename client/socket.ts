import type { GraphqlResult } from './graphql.ts'

/** Why a socket was closed. */
export class SocketClosed extends Error {
  readonly code: number

  constructor (code: number) {
    super(`The socket was closed with ${code}`)
    this.code = code
  }
}

/**
 * Yields the results of a subscription by a WebSocket (graphql-transport-ws). Throws `SocketClosed` when it is closed.
 */
export async function * readSocket (
  url: string, payload: object, token: string | undefined, signal: AbortSignal
): AsyncGenerator<GraphqlResult, void> {
  const socket = new WebSocket(url, 'graphql-transport-ws')
  const results: GraphqlResult[] = []
  let end: { code: number } | undefined
  let wake = () => {}
  const send = (message: object) => socket.send(JSON.stringify(message))
  const close = (code: number) => { end ??= { code }; wake() }
  const abort = () => { socket.close(); close(1000) }
  signal.addEventListener('abort', abort)
  socket.onopen = () => send({ type: 'connection_init', payload: token ? { authorization: `Bearer ${token}` } : {} })
  socket.onclose = ({ code }) => close(code)
  // Node 22 reports no close of a socket that could not be opened.
  socket.onerror = () => close(1006)
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data)) as { type: string, payload: unknown }
    switch (message.type) {
      case 'connection_ack': return send({ type: 'subscribe', id: '1', payload })
      case 'ping': return send({ type: 'pong' })
      case 'next': results.push(message.payload as GraphqlResult); break
      case 'error': results.push({ errors: message.payload as GraphqlResult['errors'] }); break
      case 'complete': return socket.close()
    }
    wake()
  }
  try {
    for (;;) {
      while (results.length > 0) yield results.shift()!
      if (end) throw new SocketClosed(end.code)
      await new Promise<void>((resolve) => { wake = resolve })
    }
  } finally {
    signal.removeEventListener('abort', abort)
    socket.close()
  }
}

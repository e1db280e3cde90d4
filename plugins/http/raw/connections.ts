import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyReply } from 'fastify'

/** How long a connection that is being closed is still read. */
export const LINGER_MS = 2_000

/**
 * A connection of node:http. Its internal member `_httpMessage` is the response that is being sent, and
 * `parser.incoming` the latest request.
 */
export type Connection = Duplex & {
  _httpMessage?: ServerResponse | null
  parser?: { incoming?: IncomingMessage | null } | null
  setTimeout? (milliseconds: number): void
}

/**
 * Calls a function once the responses to all complete requests on a connection have been sent: at once if there are
 * none, and never if the connection closes before that. Clients may send further requests before they have a response,
 * and RFC 9112 9.3.2 requires responses in the order of the requests. A request whose body is malformed stays
 * incomplete.
 */
export function afterResponses (connection: Connection, proceed: () => void): void {
  const response = connection._httpMessage
  if (!response?.req.complete) return proceed()
  response.once('close', () => { if (connection.writable) afterResponses(connection, proceed) })
}

/**
 * Returns whether the response to a request whose body is not complete has already been sent, or is being sent. Another
 * one, to the malformed rest of the body, would be taken for a part of it or for the response to another request.
 */
export function hasAnswered ({ _httpMessage: response, parser }: Connection): boolean {
  return response ? !response.req.complete && response.headersSent : parser?.incoming?.complete === false
}

/**
 * Does what `afterResponses` does for a connection that node:http has handed over with an `upgrade` or `connect` event.
 * Node hands it over and stops listening to it even if earlier responses are still to be sent. If another parser was
 * attached to it then, its responses would wait forever, or an assertion of Node would end the process. Until the
 * earlier responses have been sent, this listens in place of Node.
 */
export function takeOverConnection (connection: Connection, proceed: () => void): void {
  if (!connection._httpMessage) return proceed()
  const onDrain = () => connection._httpMessage?.emit('drain')
  const close = () => connection.destroy()
  // After each response, Node resumes the connection. What arrives is for the next parser, and would be lost without a
  // listener.
  const onResume = () => connection.pause()
  connection.on('drain', onDrain).on('error', close).on('timeout', close).on('resume', onResume)
  afterResponses(connection, () => {
    connection.off('drain', onDrain).off('error', close).off('timeout', close).off('resume', onResume)
    // Node emits an upgrade in this state, in which the next listener of `data` starts to read.
    Object.assign(connection, { readableFlowing: null })
    // After the last response, Node starts the time after which it closes an idle connection.
    connection.setTimeout?.(0)
    proceed()
  })
}

/**
 * Sends the last bytes on a connection and closes it. What the client is still sending is read and discarded until it
 * closes its side, for two seconds at most: closing at once would reset the connection, and the client could lose the
 * response (RFC 9112 9.6).
 */
export function closeConnection (connection: Duplex, lastBytes = ''): void {
  connection.end(lastBytes)
  // A listener of Node's parser would report each further chunk as another error.
  connection.removeAllListeners('data').on('data', () => {}).resume()
  const timer = setTimeout(() => connection.destroy(), LINGER_MS)
  connection.once('close', () => clearTimeout(timer))
}

// What is to be done when a connection is closed, and when a response is. All responses on a connection share one
// listener, and so do the actions of a response: Node warns if an emitter has more than ten.
const actionsOf = new WeakMap<Duplex, Set<() => void>>()
const actionsOfResponse = new WeakMap<FastifyReply['raw'], (() => void)[]>()

/**
 * Calls a function once when a response has been sent completely or its connection is closed, or at once if that has
 * happened. The response itself may never emit `close` while it waits for earlier ones on its connection: with Node.js
 * 22.18, and, after an upgrade request, with later versions.
 */
export function onceClosed ({ request, raw: response }: FastifyReply, act: () => void): void {
  const { socket } = request.raw
  if (response.closed || socket.destroyed) return act()
  const actions = actionsOf.get(socket) ?? watch(socket)
  actions.add(act)
  const known = actionsOfResponse.get(response)
  if (known) {
    known.push(act)
    return
  }
  const own = [act]
  actionsOfResponse.set(response, own)
  response.once('close', () => { for (const act of own) if (actions.delete(act)) act() })
}

function watch (connection: Duplex): Set<() => void> {
  const actions = new Set<() => void>()
  actionsOf.set(connection, actions)
  connection.once('close', () => {
    for (const act of actions) act()
    actions.clear()
  })
  return actions
}

import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ClientDisconnected } from '../../../schema/http/errors.ts'
import { onceClosed } from './connections.ts'

// How many requests of a connection run while an earlier response on it is still to be sent.
const AHEAD = 8
// A connection on which more requests wait is not read.
const WAITING = 100

interface Line {
  running: number
  /** Starts each of the requests that wait, or fails them because the connection is closed. */
  readonly waiting: (() => void)[]
  isScheduled: boolean
  /** Keeps the connection paused; undefined while it is read. */
  pausing: (() => void) | undefined
}

const lines = new WeakMap<Duplex, Line>()

// Node gives a connection to the response that is its turn. The others wait for it (RFC 9112 9.3.2).
const isAhead = ({ raw }: FastifyReply): boolean => raw.socket === null

function admit ({ raw: request }: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  const { socket } = request
  const line = lines.get(socket) ?? { running: 0, waiting: [], isScheduled: false, pausing: undefined }
  lines.set(socket, line)
  if (line.running < AHEAD && line.waiting.length === 0) return start()
  line.waiting.push(start)
  if (line.waiting.length > WAITING && !line.pausing) {
    // Node resumes a connection after every request, and after this one as well.
    line.pausing = () => socket.pause()
    socket.on('resume', line.pausing)
    socket.pause()
  }

  function start (): void {
    if (socket.destroyed) return done(new ClientDisconnected())
    line.running++
    onceClosed(reply, () => {
      line.running--
      schedule(line, socket)
    })
    done()
  }
}

// In the next turn of the event loop, because a client sends thousands of small requests in one packet.
function schedule (line: Line, socket: Duplex): void {
  if (line.isScheduled || line.waiting.length === 0) return
  line.isScheduled = true
  setImmediate(() => {
    line.isScheduled = false
    for (const start of line.waiting.splice(0, AHEAD - line.running)) start()
    if (line.pausing && line.waiting.length <= WAITING) {
      socket.off('resume', line.pausing)
      line.pausing = undefined
      socket.resume()
    }
    // The requests of a closed connection have failed at once.
    if (line.running < AHEAD) schedule(line, socket)
  })
}

/**
 * Limits what a client can start by sending many requests on one connection without waiting for responses: eight of
 * them run, and the others wait (contract 1.13). Responses are sent in order, so more would only be kept in memory.
 */
export default fp(async function pipelining (app) {
  app.addHook('onRequest', (request, reply, done) => {
    if (isAhead(reply)) admit(request, reply, done)
    else done()
  })
}, { name: 'usher-pipelining' })

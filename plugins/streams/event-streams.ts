import type { OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Network } from '../../schema/http/network.ts'
import type { Identity } from '../access/identity.ts'
import type { Actors } from '../access/actors.ts'
import { clientNetworksOf } from '../http/client-info.ts'
import { onceClosed } from '../http/raw/connections.ts'
import { createResponseCutOff } from '../http/raw/response-cut-off.ts'
import type { Connections } from './connections.ts'
import { EventStream } from './event-stream.ts'

export const EVENT_STREAM = 'text/event-stream'
/** What a stream begins with: how long a client waits before it connects again, in milliseconds. */
export const RECONNECT = 'retry: 1000\n'
/** The `Retry-After` of a rejected socket or event stream. */
export const RETRY_AFTER_SECONDS = 5
const RESPONSE_LISTENERS = 30

interface Dependencies {
  connections: Connections
  access: Pick<Identity, 'watch'> & { readonly actors: Actors }
}

export type EventStreams = ReturnType<typeof createEventStreams>

/** Creates the responses with server-sent events. They end when the session of their reader ends, and with the app. */
export function createEventStreams (app: FastifyInstance, { connections, access }: Dependencies) {
  const cutOff = createResponseCutOff(app)
  const open = new Set<EventStream>()
  let closing = false
  const pinging = setInterval(
    () => { for (const stream of open) stream.check() }, app.usherOptions.pingSeconds * 1000
  ).unref()
  app.addHook('preClose', async () => {
    clearInterval(pinging)
    closing = true
    for (const stream of open) stream.end()
  })

  return {
    /** Sets the headers of a response with events. */
    describe (reply: FastifyReply): void {
      reply.type(EVENT_STREAM).headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    },

    /**
     * Opens a stream to the client of a request. Throws `TooManyConnections`, `Overloaded` and what `begin` throws.
     * @param begin begins to write to it, and returns a function that is called when it has closed
     */
    async open (
      request: FastifyRequest, begin: (stream: EventStream, networks: readonly Network[]) => Promise<() => void>
    ): Promise<EventStream> {
      const networks = clientNetworksOf(request)
      const leave = connections.admit(networks, 'sse')
      const stream = new EventStream(connections.unread)
      stream.once('close', leave)
      try {
        const reader = access.actors.in(request)
        // Before the events, which may take a while, because the session may end meanwhile.
        if (reader) stream.once('close', access.watch(reader, () => stream.end()))
        const stop = await begin(stream, networks)
        open.add(stream)
        stream.once('close', () => {
          open.delete(stream)
          stop()
        })
      } catch (error) {
        stream.destroy()
        throw error
      }
      // `preClose` has ended the streams that were open then, and this one was not.
      if (closing) stream.end()
      return stream
    },

    /** Sends a stream. `reply.send` is not used, because it would log every client that disconnects, as all do. */
    send (stream: EventStream, { log }: FastifyRequest, reply: FastifyReply): void {
      cutOff(reply)
      onceClosed(reply, () => stream.destroy())
      reply.hijack()
      // The client may have disconnected meanwhile.
      if (reply.raw.destroyed) return void stream.destroy()
      // Fastify, the pipeline and those who wait for the end, such as a malformed request behind it, all listen.
      reply.raw.setMaxListeners(RESPONSE_LISTENERS)
      reply.raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders)
      // The client receives the headers before the first event.
      reply.raw.flushHeaders()
      pipeline(stream, reply.raw, (err) => { if (err) log.debug({ err }, 'an event stream was cut off') })
    },
  }
}

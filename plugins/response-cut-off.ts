import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { onceClosed } from './connections.ts'

// Responses in progress have this long to finish. Mail and the database need the rest of the time that a stop may take.
const CUT_OFF_MS = 3000

/**
 * Returns a function that takes the reply to a request whose duration depends on its client. Three seconds after the app has begun to
 * close, the response is cut off: otherwise a client that neither reads nor sends would keep the host's app from closing.
 */
export function createResponseCutOff (app: FastifyInstance): (reply: FastifyReply) => void {
  const responses = new Set<ServerResponse>()
  app.addHook('preClose', async () => {
    setTimeout(() => { for (const response of responses) response.destroy() }, CUT_OFF_MS).unref()
  })
  return (reply) => {
    responses.add(reply.raw)
    onceClosed(reply, () => responses.delete(reply.raw))
  }
}

import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { onceClosed } from './connections.ts'

/**
 * Returns a function that takes the reply to a request whose duration depends on its client. Some time after the app
 * has begun to close (`deadlines.responseCutOff`), the response is cut off: mail and the database need the rest of the
 * time that a stop may take, and otherwise a client that neither reads nor sends would keep the host's app from
 * closing.
 */
export function createResponseCutOff (app: FastifyInstance): (reply: FastifyReply) => void {
  const responses = new Set<ServerResponse>()
  app.addHook('preClose', async () => {
    setTimeout(
      () => { for (const response of responses) response.destroy() }, app.usherOptions.deadlines.responseCutOff
    ).unref()
  })
  return (reply) => {
    responses.add(reply.raw)
    onceClosed(reply, () => responses.delete(reply.raw))
  }
}

import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

// Responses in progress have this long to finish. Mail and the database need the rest of the time that a stop may take.
const CUT_OFF_MS = 3000

/**
 * Returns a function that takes a response whose duration depends on its client. Three seconds after the app has begun to
 * close, the response is cut off: otherwise a client that neither reads nor sends would keep the host's app from closing.
 */
export function createResponseCutOff (app: FastifyInstance): (response: ServerResponse) => void {
  const responses = new Set<ServerResponse>()
  app.addHook('preClose', async () => {
    setTimeout(() => { for (const response of responses) response.destroy() }, CUT_OFF_MS).unref()
  })
  return (response) => {
    // The client has disconnected already, so there is no `close` event to come.
    if (response.closed) return
    responses.add(response)
    response.once('close', () => responses.delete(response))
  }
}

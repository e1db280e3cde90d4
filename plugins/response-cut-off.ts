import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

// What is under way has that long to finish. Mail and the database need the rest of a stop.
const CUT_OFF_MS = 3000

/**
 * Makes a function that notes a response whose client decides how long it takes. It is cut off a while after the app has
 * begun to close: otherwise, a client that neither reads nor sends would keep the app of a host open.
 */
export function createResponseCutOff (app: FastifyInstance): (response: ServerResponse) => void {
  const responses = new Set<ServerResponse>()
  app.addHook('preClose', async () => {
    setTimeout(() => { for (const response of responses) response.destroy() }, CUT_OFF_MS).unref()
  })
  return (response) => {
    // Its client has disconnected already.
    if (response.closed) return
    responses.add(response)
    response.once('close', () => responses.delete(response))
  }
}

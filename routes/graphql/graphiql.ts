import { gzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'

// Everything is in the page: scripts, styles, fonts, workers. It talks to its own origin, by HTTP and socket.
const POLICY = [
  "default-src 'none'", "script-src 'unsafe-inline' 'unsafe-eval'", "style-src 'unsafe-inline'", 'img-src data:',
  'font-src data:', "connect-src 'self'", 'worker-src blob:', "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join('; ')

let page: Promise<Buffer> | undefined

/** Whether a GET comes from a browser that wants a page. */
export function wantsGraphiql (request: FastifyRequest): boolean {
  return new Negotiator(request.raw).mediaType(['application/json', 'text/html']) === 'text/html'
}

/** Sends GraphiQL. Its nine megabytes are loaded for the first who asks, and kept compressed. */
export async function sendGraphiql (reply: FastifyReply): Promise<FastifyReply> {
  page ??= import('@graphql-yoga/render-graphiql').then(({ renderGraphiQL }) => gzipSync(renderGraphiQL({
    title: 'Usher GraphiQL',
    subscriptionsProtocol: 'WS',
    defaultQuery: '{\n  users(first: 10) {\n    nodes { id name }\n  }\n}\n',
  })))
  return reply
    .header('content-security-policy', POLICY)
    .header('content-encoding', 'gzip')
    .header('vary', 'Accept')
    .type('text/html; charset=utf-8')
    .send(await page)
}

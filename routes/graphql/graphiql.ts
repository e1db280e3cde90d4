import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'

const SCRIPT = ['<script>', '</script>'] as const

let page: ReturnType<typeof createPage> | undefined

/** Returns whether a request prefers a page to JSON, as those of browsers do. */
export function wantsGraphiql (request: FastifyRequest): boolean {
  return new Negotiator(request.raw).mediaType(['application/json', 'text/html']) === 'text/html'
}

/** Sends GraphiQL. Its nine megabytes are loaded on the first request and kept compressed. */
export async function sendGraphiql (reply: FastifyReply): Promise<void> {
  page ??= createPage()
  const { body, policy } = await page
  // Not returned: awaiting a reply throws if the client disconnects before it is sent.
  reply
    .header('content-security-policy', policy)
    .header('content-encoding', 'gzip')
    .header('vary', 'Accept')
    .type('text/html; charset=utf-8')
    .send(body)
}

async function createPage () {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql')
  const html = renderGraphiQL({
    title: 'Usher GraphiQL',
    subscriptionsProtocol: 'WS',
    defaultQuery: '{\n  users(first: 10) {\n    nodes { id name }\n  }\n}\n',
  })
  const [start, end] = SCRIPT
  const script = html.slice(html.indexOf(start) + start.length, html.lastIndexOf(end))
  return { body: await promisify(gzip)(html), policy: createPolicy(script) }
}

// Script, styles, fonts and workers are inline. The page sends requests to its own origin only, over HTTP and WebSockets.
function createPolicy (script: string): string {
  const hash = createHash('sha256').update(script).digest('base64')
  return [
    "default-src 'none'", `script-src 'sha256-${hash}'`, "style-src 'unsafe-inline'", 'img-src data:', 'font-src data:',
    "connect-src 'self'", 'worker-src blob:', "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].join('; ')
}

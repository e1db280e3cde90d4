import { readFile } from 'node:fs/promises'
import type { FastifyReply } from 'fastify'
import type { CompressedPage } from './graphiql-page.ts'

const BUILT = new URL('graphiql-page.json', import.meta.url)

let page: Promise<CompressedPage> | undefined

/** Sends GraphiQL. The page is loaded on the first request and kept compressed. */
export async function sendGraphiql (reply: FastifyReply): Promise<void> {
  page ??= readPage()
  const { body, policy } = await page
  // Not returned: awaiting a reply throws if the client disconnects before it is sent.
  reply
    .header('content-security-policy', policy)
    .header('content-encoding', 'gzip')
    .header('vary', 'Accept')
    .type('text/html; charset=utf-8')
    .send(body)
}

// The package has the page ready. In a clone it is created.
async function readPage (): Promise<CompressedPage> {
  const built = await readFile(BUILT, 'utf8').catch(() => undefined)
  if (built === undefined) return (await import('./graphiql-page.ts')).createPage()
  const { policy } = JSON.parse(built) as { policy: string }
  return { body: await readFile(new URL('graphiql-page.html.gz', import.meta.url)), policy }
}

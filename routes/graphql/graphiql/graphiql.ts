import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { addVary } from '../../../plugins/http/vary.ts'
import type { CompressedPage } from './page.ts'

const unzip = promisify(gunzip)

let page: Promise<CompressedPage> | undefined
let uncompressed: Promise<Buffer> | undefined

/**
 * Sends GraphiQL. The page is loaded on the first request, and decompressed on the first one of a client that does not
 * accept gzip.
 */
export async function sendGraphiql (request: FastifyRequest, reply: FastifyReply): Promise<void> {
  page ??= import('./page.ts').then(({ createPage }) => createPage())
  const { body, policy } = await page
  const isCompressed = new Negotiator(request.raw).encoding(['gzip', 'identity']) === 'gzip'
  if (isCompressed) reply.header('content-encoding', 'gzip')
  addVary(reply, 'Accept')
  addVary(reply, 'Accept-Encoding')
  const sent = isCompressed ? body : await (uncompressed ??= unzip(body))
  // Not returned: awaiting a reply throws if the client disconnects before it is sent.
  reply
    .header('content-security-policy', policy)
    .type('text/html; charset=utf-8')
    .send(sent)
}

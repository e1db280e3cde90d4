import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { KeySet } from '../schema/auth/login.ts'
import { combinedTag } from '../schema/http/entity-tag.ts'
import { failures, NotModified } from '../schema/http/reply.ts'
import { revalidate, sendNotModified } from './conditional-request.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'

const schema = {
  tags: ['auth'],
  summary: 'List the public keys that verify access tokens',
  response: { 200: KeySet, 304: NotModified, ...failures(412) },
}

/** Adds GET /.well-known/jwks.json (contract 4.9). */
const wellKnown: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAuth: { tokens } } = app

  app.get('/.well-known/jwks.json', { schema, exposeHeadRoute: true }, onRead)

  async function onRead (request: RequestOf<typeof schema>, reply: ReplyOf<typeof schema>) {
    const keySet = tokens.keySet
    // The id of a key is a digest of it.
    const tag = combinedTag(['keys 1', ...keySet.keys.map(({ kid }) => kid)])
    return revalidate(request, reply, tag) ? sendNotModified(request, reply) : keySet
  }
}

export default wellKnown

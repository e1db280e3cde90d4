import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { KeySet } from '../../schema/sign-in/login.ts'
import { RelatedOrigins } from '../../schema/sign-in/passkeys.ts'
import { combinedTag } from '../../schema/http/entity-tag.ts'
import { failures, NotModified } from '../../schema/http/reply.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const schemas = {
  keys: {
    tags: ['auth'],
    operationId: 'listPublicKeys',
    summary: 'List the public keys that verify access tokens',
    response: { 200: KeySet, 304: NotModified, ...failures(412) },
  },
  origins: {
    tags: ['auth'],
    operationId: 'listPasskeyOrigins',
    summary: 'List the origins whose pages may use passkeys',
    response: { 200: RelatedOrigins, 304: NotModified, ...failures(412) },
  },
}

/** Adds GET /.well-known/jwks.json (contract 4.9) and GET /.well-known/webauthn (contract 16.3). */
const wellKnown: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAccess: { tokens }, usherSignIn: { passkeys } } = app

  app.get('/.well-known/jwks.json', { schema: schemas.keys, exposeHeadRoute: true }, onReadKeys)
  app.get('/.well-known/webauthn', { schema: schemas.origins, exposeHeadRoute: true }, onReadOrigins)

  async function onReadKeys (request: RequestOf<typeof schemas.keys>, reply: ReplyOf<typeof schemas.keys>) {
    const keySet = tokens.keySet
    // The id of a key is a digest of it.
    const tag = combinedTag(['keys 1', ...keySet.keys.map(({ kid }) => kid)])
    return revalidate(request, reply, tag) ? sendNotModified(request, reply) : keySet
  }

  async function onReadOrigins (request: RequestOf<typeof schemas.origins>, reply: ReplyOf<typeof schemas.origins>) {
    const origins = passkeys.relyingParty.related()
    const tag = combinedTag(['origins 1', ...origins])
    return revalidate(request, reply, tag) ? sendNotModified(request, reply) : { origins }
  }
}

export default wellKnown

import type { FastifyReply, FastifyRequest } from 'fastify'
import { NotAcceptable } from '../schema/errors.ts'
import { mediaTypes, negotiate } from '../schema/version.ts'

/** An `onRequest` hook that selects the version of the response (contract 3). Throws `NotAcceptable` if the client accepts none. */
export async function negotiateVersion ({ headers: { accept } }: FastifyRequest, reply: FastifyReply): Promise<void> {
  const type = negotiate(accept)
  // CORS of the host or the node may have set `Vary` already.
  reply.header('vary', [reply.getHeader('vary') ?? [], 'Accept'].flat().join(', '))
  if (!type) throw new NotAcceptable(mediaTypes.join(', '))
  reply.type(type)
}

import type { FastifyReply, FastifyRequest } from 'fastify'
import { addVary } from '../../plugins/http/vary.ts'
import { NotAcceptable } from '../../schema/http/errors.ts'
import { mediaTypes, negotiate } from '../../schema/runtime/version.ts'

/**
 * An `onRequest` hook that selects the version of the response (contract 3). Throws `NotAcceptable` if the client
 * accepts none.
 */
export async function negotiateVersion ({ headers: { accept } }: FastifyRequest, reply: FastifyReply): Promise<void> {
  const type = negotiate(accept)
  addVary(reply, 'Accept')
  if (!type) throw new NotAcceptable(mediaTypes.join(', '))
  reply.type(type)
}

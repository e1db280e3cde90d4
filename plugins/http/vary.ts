import type { FastifyReply } from 'fastify'

/**
 * Adds the name of a request header on which the response depends to `Vary`. CORS of the host or the node may have set
 * it already.
 */
export function addVary (reply: FastifyReply, name: string): void {
  const known = [reply.getHeader('vary') ?? []].flat()
  reply.header('vary', [...known, name].join(', '))
}

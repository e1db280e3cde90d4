import type { FastifyReply, FastifyRequest } from 'fastify'
import { InvalidInput } from '../schema/errors.ts'

// A preference, which may have parameters and a quoted value (RFC 7240 2).
const STRICT = /(?:^|,)\s*handling\s*=\s*"?strict"?\s*(?:[;,]|$)/i

/**
 * Returns a `preValidation` hook that rejects unknown parameters of the query if the client prefers strict handling (RFC 7240 4.4).
 * Without that preference they are ignored (contract 10.5).
 */
export function strictParameters (known: readonly string[]) {
  return async ({ headers: { prefer }, query }: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (prefer === undefined || !STRICT.test([prefer].flat().join())) return
    reply.header('preference-applied', 'handling=strict')
    const unknown = Object.keys(query as object).filter((name) => !known.includes(name))
    if (unknown.length > 0) throw new InvalidInput(...unknown.slice(0, 100).map((name) => `${name} is not a parameter`))
  }
}

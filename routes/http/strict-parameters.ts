import type { FastifyReply, FastifyRequest } from 'fastify'
import { InvalidInput } from '../../schema/http/errors.ts'

// A preference, which may have parameters and a quoted value (RFC 7240 2).
const STRICT = /(?:^|,)\s*handling\s*=\s*"?strict"?\s*(?:[;,]|$)/i
const MAX_ERRORS = 100

/**
 * Returns options of a route that rejects unknown parameters of the query if the client prefers strict handling (RFC
 * 7240 4.4). Without that preference they are ignored (contract 10.5). The response lists them after the other problems
 * of the request.
 */
export function strictParameters (known: readonly string[]) {
  return {
    attachValidation: true,
    async preHandler (
      { headers: { prefer }, query, validationError }: FastifyRequest, reply: FastifyReply
    ): Promise<void> {
      const isStrict = prefer !== undefined && STRICT.test([prefer].flat().join())
      if (isStrict) reply.header('preference-applied', 'handling=strict')
      const unknown = isStrict ? Object.keys(query as object).filter((name) => !known.includes(name)) : []
      const { errors = [] } = (validationError ?? {}) as Partial<InvalidInput>
      const problems = [...errors, ...unknown.map((name) => `${name} is not a parameter`)]
      if (problems.length > 0) throw new InvalidInput(...problems.slice(0, MAX_ERRORS))
    },
  }
}

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Performed, Steps } from '../../plugins/idempotency/index.ts'
import { readIdempotencyKey, type KeyedRequest } from '../../schema/http/idempotency.ts'

/** Returns the idempotency key of a request. Throws `InvalidInput`. */
export const keyOf = ({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined =>
  readIdempotencyKey(headers['idempotency-key'])

/** Marks the response to a repeated request. */
export function markReplayed (reply: FastifyReply, { isReplayed }: Pick<Performed<unknown>, 'isReplayed'>): void {
  if (isReplayed) reply.header('idempotency-replayed', 'true')
}

/**
 * Returns a function that performs the write of a route once for each idempotency key (contract 10.4), and returns its
 * result.
 */
export function createOnce ({ usherIdempotency: idempotency, usherAccess: { actorOf, callerOf } }: FastifyInstance) {
  return async function once<Result> (
    request: FastifyRequest, reply: FastifyReply, { content, password }: Pick<KeyedRequest, 'content' | 'password'>,
    steps: Steps<Result>
  ): Promise<Result> {
    const key = keyOf(request)
    if (key === undefined) return steps.operate()
    const keyed = { actorId: actorOf(request).id, key, operation: operationOf(request), content, password }
    const performed = await idempotency.once(keyed, steps, callerOf(request))
    markReplayed(reply, performed)
    return performed.result
  }
}

/**
 * Returns a function that claims the idempotency key of a request before its body is read. Release the claim in any
 * case. Its method `perform` performs the write once the content of the request is known. Throws `IdempotencyKeyInUse`.
 */
export function createClaim ({ usherIdempotency: idempotency, usherAccess: { actorOf, callerOf } }: FastifyInstance) {
  return async function claim (request: FastifyRequest) {
    const key = keyOf(request)
    const actorId = actorOf(request).id
    const claimed = key === undefined ? undefined : await idempotency.claim(actorId, key)
    return {
      /** Returns whether the result of an earlier request with the key is stored. */
      hasResult: async (): Promise<boolean> => claimed !== undefined && claimed.hasResult(),
      async perform<Result> (content: object, steps: Steps<Result>): Promise<Performed<Result>> {
        if (!claimed) return { result: await steps.operate(), isReplayed: false }
        const resultKey = idempotency.toResultKey({ actorId, key: key!, operation: operationOf(request), content })
        return claimed.perform(resultKey, steps, callerOf(request))
      },
      release: () => claimed?.release(),
    }
  }
}

const operationOf = ({ method, url }: FastifyRequest): string => `${method} ${url}`

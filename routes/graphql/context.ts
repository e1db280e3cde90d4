import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Client } from '../../db/batching.ts'
import type { Actor } from '../../schema/policy.ts'
import type { ResultSize } from './result-budget.ts'

/** What every resolver gets, besides what mercurius adds. */
export interface GraphQLContext extends ResultSize {
  readonly usher: FastifyInstance
  /** For whom it is: what is asked for is not read any more once the connection is gone. */
  readonly client: Client
  /** Who is asking; null without a token. Over a socket it is asked anew, since the session may have ended. */
  readonly actor: () => Promise<Actor | null>
  /** The request that it comes by, or the socket; events have none. */
  readonly request?: FastifyRequest
  /** Added by mercurius to what is answered by a response. */
  readonly reply?: FastifyReply
  readonly operationName?: string | undefined
  /** Where a subscription goes on, if its transport says so. */
  readonly lastEventId?: string | undefined
  /** Ends the turn of a costly operation. */
  leaveQueue?: (() => void) | undefined
  reader?: Client
}

/** Returns the context of an operation by HTTP. */
export function createContext (usher: FastifyInstance, request: FastifyRequest, operationName: string | undefined): GraphQLContext {
  return { usher, client: request.socket, actor: async () => request.actor, request, operationName, bytes: 0, reserved: 0 }
}

/** Returns the client of reads that are not needed any more when the response has become too large. */
export function readerOf (context: GraphQLContext): Client {
  context.reader ??= new Reader(context)
  return context.reader
}

class Reader implements Client {
  readonly #context: GraphQLContext

  constructor (context: GraphQLContext) {
    this.#context = context
  }

  get destroyed (): boolean {
    const { bytes, client, usher: { usherGraphqlLimits: { results } } } = this.#context
    return client.destroyed || bytes > results.maxBytes
  }
}

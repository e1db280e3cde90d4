import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Client } from '../../db/batching/batching.ts'
import type { Actor } from '../../schema/options/policy.ts'
import type { Operation } from './execution/operation.ts'
import type { Failures } from './execution/failures.ts'
import type { ResultSize } from './limits/result-budget.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import type { PostReads } from '../../plugins/posts/read-posts.ts'

/** The context of resolvers. mercurius adds members of its own. */
export interface GraphQLContext extends ResultSize, Failures {
  readonly usher: FastifyInstance
  /** The connection of the operation. Reads that have not been sent are cancelled once it is closed. */
  readonly client: Client
  /**
   * Returns the actor, or null without a token. Each call verifies that the actor may still act, because the session
   * may have ended while the operation waited. Throws `InvalidToken`, `DatabaseUnavailable`.
   */
  readonly actor: () => Promise<Actor | null>
  /** The HTTP request of the operation, or the one that opened its socket. Absent if an event is executed. */
  readonly request?: FastifyRequest
  /** The request of the only subscriber of an event, for resolvers of the host. */
  readonly hostRequest?: FastifyRequest | undefined
  /** Is aborted when a subscription ends. */
  readonly stopped?: AbortSignal | undefined
  /**
   * Is aborted when the client has stopped a query or a mutation of a socket, which then does not wait for its turn any
   * longer.
   */
  readonly discarded?: AbortSignal
  /** Whether an event of a subscription is executed. */
  readonly isEvent?: boolean
  /** The reply, which mercurius adds to operations over HTTP. */
  readonly reply?: FastifyReply
  readonly operationName?: string | undefined
  /** The operation as it was sent. Absent if an event is executed. */
  readonly operation?: Operation | undefined
  /**
   * The cursor after which a subscription resumes, if the transport sends one. It takes precedence over the argument
   * `after`.
   */
  readonly lastEventId?: string | undefined
  /** Ends the turn of a costly operation in the queue. Operations that do not have to queue have none. */
  leaveQueue?: (() => void) | undefined
  /** Whether a mutation with an idempotency key was not a repetition. */
  isNew?: boolean
  /** Whether the operation is a query, whose result is not sent to a session that has ended meanwhile. */
  isQuery?: boolean
  /** The actor on whose permission the result depends. */
  verified?: Actor
  /** The reader, see `readerOf`. */
  reader?: Promise<Caller>
  /** The caller of reads that was identified last. */
  identified?: Caller
  /** The caller of reads that do not depend on the reader, see `readerOf`. */
  anybody?: Caller
}

/** Returns the context of an operation over HTTP. */
export function createContext (
  usher: FastifyInstance, request: FastifyRequest, operation: Operation | undefined
): GraphQLContext {
  const operationName = operation?.operationName
  const { socket } = request
  const actor = async () => {
    const actor = usher.usherAccess.actors.in(request)
    await usher.usherAccess.confirmReader(actor, socket)
    return actor
  }
  return { usher, client: socket, actor, request, operation, operationName, bytes: 0, reserved: 0 }
}

/** Returns the reads of posts for an operation. Costly ones have reads of their own. */
export function postReadsOf ({ usher: { usherPosts }, leaveQueue }: GraphQLContext): PostReads {
  return leaveQueue ? usherPosts.costlyReads : usherPosts.reads
}

/** The client of the reads of an operation, which are also cancelled once the response is too large. */
export class ReadClient implements Client {
  readonly #context: GraphQLContext

  constructor (context: GraphQLContext) {
    this.#context = context
  }

  get destroyed (): boolean {
    const { bytes, client, usher: { usherGraphql: { limits: { results } } } } = this.#context
    return client.destroyed || bytes > results.maxBytes
  }
}

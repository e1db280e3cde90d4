import { defineError } from '../../../schema/http/errors.ts'
import type { UsherGraphQLContext } from '../../../schema/graphql/host-graphql.ts'
import type { Actor } from '../../../schema/options/policy.ts'
import type { GraphQLContext } from '../context.ts'
import { identifiedReaderOf } from '../resolvers/reading.ts'

export const ResolverTimeout = defineError('RESOLVER_TIMEOUT', 'The server took too long, try again', 503)

/** What belongs to one operation or event: the context that the host sees, and the time that its resolvers have. */
export interface HostCall {
  readonly context: UsherGraphQLContext
  readonly deadline: Deadline
}

const calls = new WeakMap<GraphQLContext, HostCall>()

/** Returns the call of an operation if its actor is known already. Then nothing has to wait. */
export const knownCall = (context: GraphQLContext): HostCall | undefined => calls.get(context)

/** Returns the call of an operation. Throws `InvalidToken` if a socket's session has ended. */
export async function openCall (context: GraphQLContext): Promise<HostCall> {
  const { actor } = await identifiedReaderOf(context)
  const known = calls.get(context) ?? createCall(context, actor)
  calls.set(context, known)
  return known
}

function createCall (
  { usher, request: ownRequest, hostRequest: request = ownRequest, stopped, isEvent }: GraphQLContext,
  reader: Actor | null
): HostCall {
  const deadline = new Deadline(usher.usherOptions.graphql.resolverSeconds * 1000)
  const host = usher.usherHost
  return {
    deadline,
    context: Object.freeze({
      // An event for several subscribers has no request and no actor.
      // No action permits what the host's fields do. For an API key with a list of actions, they do what they do for
      // anybody.
      actor: (isEvent && !request) || (reader && reader.actions !== null) ? null : reader,
      app: host,
      usher: host[usher.usherOptions.decoratorName as 'usher'],
      request,
      log: request?.log ?? usher.log,
      signal: stopped ? AbortSignal.any([stopped, deadline.signal]) : deadline.signal,
    }),
  }
}

/** The time that the resolvers of an operation have together, beginning with the first. */
export class Deadline {
  readonly #at: number
  readonly #controller = new AbortController()
  readonly #over = Promise.withResolvers<never>()
  #waiting = 0
  #timer: NodeJS.Timeout | undefined

  constructor (milliseconds: number) {
    this.#at = performance.now() + milliseconds
    this.#over.promise.catch(() => {})
  }

  get signal (): AbortSignal {
    return this.#controller.signal
  }

  /** Waits for a result. Throws `ResolverTimeout` if it does not arrive in time. */
  async wait<Result> (result: PromiseLike<Result>): Promise<Result> {
    // The timer exists only while something waits, so that it needs no further end.
    if (this.#waiting++ === 0) {
      this.#timer = setTimeout(() => this.#end(), Math.max(0, this.#at - performance.now())).unref()
    }
    try {
      return await Promise.race([result, this.#over.promise])
    } finally {
      if (--this.#waiting === 0) clearTimeout(this.#timer)
    }
  }

  #end (): void {
    const error = new ResolverTimeout()
    this.#over.reject(error)
    this.#controller.abort(error)
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The app in which Usher is registered. */
    usherHost: FastifyInstance
  }
}

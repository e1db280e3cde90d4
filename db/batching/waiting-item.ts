import type { Span } from '@opentelemetry/api'
import type { Client } from './batch-options.ts'

/** An item that waits for its batch (`db/batching/batching.ts`). */
export interface Waiting<Result> {
  promise: Promise<Result>
  resolve: (result: Result) => void
  reject: (error: unknown) => void
  since: number
  /** The client that waits for the item; undefined if the item is processed in any case. */
  client: Client | undefined
  /** Further clients that wait for the same item. */
  others: (Client | undefined)[] | undefined
  /** The spans of the requests that wait for the item, if there are traces. */
  spans: readonly Span[] | undefined
}

/** Returns whether every client that waits for an item is destroyed. */
export function isAbandoned ({ client, others }: Pick<Waiting<unknown>, 'client' | 'others'>): boolean {
  return client?.destroyed === true && (others === undefined || others.every((other) => other?.destroyed))
}

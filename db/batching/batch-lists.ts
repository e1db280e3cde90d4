import type { BatchOptions } from './batch-options.ts'
import { batchCalls, type Client } from './batching.ts'
import type { BatchTelemetry } from '../telemetry/batch.ts'

const LISTS_IN_FLIGHT = 4
/** The number of concurrent lists of a kind that may take long, such as searches. */
export const SLOW_LISTS_IN_FLIGHT = 2

/**
 * Returns a function that reads a list, and that concurrent requests for the same list share. Each statement reads one
 * list. Queries are compared as JSON.
 */
export function batchLists<Query, Page> (
  list: (query: Query) => Promise<Page>,
  { telemetry, inFlight = LISTS_IN_FLIGHT, timeoutMs }: Pick<BatchOptions, 'inFlight' | 'timeoutMs'> &
    { telemetry: BatchTelemetry }
): (query: Query, client?: Client) => Promise<Page> {
  const run = async ([query]: string[]) => [await list(JSON.parse(query!) as Query)]
  const read = batchCalls(run, { size: 1, inFlight, ...timeoutMs !== undefined && { timeoutMs }, telemetry })
  return (query, client) => read(JSON.stringify(query), client)
}

import { batchCalls, type Client } from './batching.ts'

const LISTS_IN_FLIGHT = 4

/**
 * Returns a function that reads a list, and that concurrent requests for the same list share. Each statement reads one list.
 * Queries are compared as JSON.
 */
export function batchLists<Query, Page> (list: (query: Query) => Promise<Page>): (query: Query, client?: Client) => Promise<Page> {
  const run = async ([query]: string[]) => [await list(JSON.parse(query!) as Query)]
  const read = batchCalls(run, { size: 1, inFlight: LISTS_IN_FLIGHT })
  return (query, client) => read(JSON.stringify(query), client)
}

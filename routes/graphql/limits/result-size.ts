import type { GraphQLResolveInfo } from 'graphql'
import { collectFields, selectionSetsOf, type Fragments } from '../../../schema/graphql/user-fields.ts'
import type { GraphQLContext } from '../context.ts'
import { hasHostFieldOfPosts } from '../resolvers/selection.ts'

// Only texts and JSON are counted, since clients choose their length. The cost of an operation limits how many other
// fields a response has.
type Row = object

// Fields of a connection between a list and its rows.
const wrappers = new Set(['nodes', 'edges', 'node'])
// For a text of fewer characters, they are counted instead of bytes, which is faster.
const SHORT = 256

const jsonBytes = new WeakMap<object, number>()

type Output = readonly [name: string, times: number]

// Caches the fields of each selection. A compiled document always passes the same nodes.
const outputs = new WeakMap<readonly object[], readonly Output[]>()

/**
 * Counts the bytes that rows add to the response, including aliases, towards the limits of responses. Throws
 * `ResponseTooLarge` or `Overloaded`.
 */
export function countRows (context: GraphQLContext, info: GraphQLResolveInfo, rows: readonly Row[]): void {
  const { results } = context.usher.usherGraphql.limits
  const outputs = outputsOf(info)
  let bytes = 0
  for (const row of rows) {
    for (const [name, times] of outputs) bytes += times * lengthOf(row, name)
    if (context.bytes + bytes > results.maxBytes) break
  }
  results.add(context, bytes)
}

/**
 * Returns whether the response has the contents of these posts. Those of a list may have been read for the posts below
 * them only.
 */
export function showsContents (info: GraphQLResolveInfo): boolean {
  return outputsOf(info).some(([name]) => name === 'content')
}

function lengthOf (row: Row, name: string): number {
  if (name === 'content' && 'contentBytes' in row) return row.contentBytes as number
  const value: unknown = row[name as keyof Row]
  if (typeof value === 'object' && value !== null) return lengthOfJson(value)
  if (typeof value !== 'string') return 0
  return value.length < SHORT ? value.length : Buffer.byteLength(value)
}

function lengthOfJson (value: object): number {
  if (value instanceof Date) return 0
  const known = jsonBytes.get(value)
  if (known !== undefined) return known
  const bytes = Buffer.byteLength(JSON.stringify(value))
  jsonBytes.set(value, bytes)
  return bytes
}

function outputsOf ({ fieldNodes, fragments, schema }: GraphQLResolveInfo): readonly Output[] {
  const known = outputs.get(fieldNodes)
  if (known) return known
  const times = new Map<string, number>()
  count(selectionSetsOf(fieldNodes), new Map(Object.entries(fragments)))
  // Then the content was read, although it may not be in the response.
  if (!times.has('content') && hasHostFieldOfPosts(schema, new Set(times.keys()))) times.set('content', 1)
  const found = [...times]
  outputs.set(fieldNodes, found)
  return found

  function count (sets: ReturnType<typeof selectionSetsOf>, fragments: Fragments): void {
    for (const nodes of collectFields(sets, fragments).values()) {
      const name = nodes[0]!.name.value
      times.set(name, (times.get(name) ?? 0) + 1)
      if (wrappers.has(name)) count(selectionSetsOf(nodes), fragments)
    }
  }
}

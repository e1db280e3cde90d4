import type { GraphQLResolveInfo } from 'graphql'
import { collectFields, selectionSetsOf, type Fragments } from '../../schema/graphql-fields.ts'
import type { GraphQLContext } from './context.ts'

/** The fields whose length clients choose. The cost of an operation limits how many of the other fields a response has. */
export const texts = ['name', 'email', 'title', 'content'] as const
type Text = typeof texts[number]
type Row = { readonly [Name in Text]?: string }

// Fields of a connection between a list and its rows.
const wrappers = new Set(['nodes', 'edges', 'node'])
// For a text of fewer characters, they are counted instead of bytes, which is faster.
const SHORT = 256

// Caches the bytes of each content, because a content may be large and the aliases of a document share the rows that they read.
const contentBytes = new WeakMap<Row, number>()

type Output = readonly [text: Text, times: number]

// Caches the texts of each selection. A compiled document always passes the same nodes.
const outputs = new WeakMap<readonly object[], readonly Output[]>()

/**
 * Counts the bytes that rows add to the response, including aliases, towards the limits of responses. Throws `ResponseTooLarge` or
 * `Overloaded`.
 */
export function countRows (context: GraphQLContext, info: GraphQLResolveInfo, rows: readonly Row[]): void {
  const { results } = context.usher.usherGraphqlLimits
  const outputs = outputsOf(info)
  let bytes = 0
  for (const row of rows) {
    for (const [text, times] of outputs) bytes += times * lengthOf(row, text)
    if (context.bytes + bytes > results.maxBytes) break
  }
  results.add(context, bytes)
}

function lengthOf (row: Row, text: Text): number {
  const value = row[text]!
  if (value.length < SHORT) return value.length
  if (text !== 'content') return Buffer.byteLength(value)
  const known = contentBytes.get(row)
  if (known !== undefined) return known
  const bytes = Buffer.byteLength(value)
  contentBytes.set(row, bytes)
  return bytes
}

function outputsOf ({ fieldNodes, fragments }: GraphQLResolveInfo): readonly Output[] {
  const known = outputs.get(fieldNodes)
  if (known) return known
  const times = new Map<string, number>()
  count(selectionSetsOf(fieldNodes), new Map(Object.entries(fragments)))
  const found = texts.flatMap((text): Output[] => times.has(text) ? [[text, times.get(text)!]] : [])
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

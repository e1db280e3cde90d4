import type { GraphQLResolveInfo } from 'graphql'
import { collectFields, selectionSetsOf, type Fragments } from '../../schema/graphql-fields.ts'
import type { GraphQLContext } from './context.ts'

// Texts that are as long as clients like. Everything else in a row is short, and its number is bounded by the cost.
const texts = ['name', 'email', 'title', 'content'] as const
type Text = typeof texts[number]
type Row = { readonly [Name in Text]?: string }

// What a list is wrapped in.
const wrappers = new Set(['nodes', 'edges', 'node'])
// A shorter text is counted by its characters, which is faster.
const SHORT = 256

type Output = readonly [text: Text, times: number]

// A compiled document keeps its nodes: they are walked once.
const outputs = new WeakMap<readonly object[], readonly Output[]>()

/**
 * Counts the bytes that rows add to the response, aliases included, against its limit. Throws `ResponseTooLarge` or
 * `Overloaded`.
 */
export function countRows (context: GraphQLContext, info: GraphQLResolveInfo, rows: readonly Row[]): void {
  let bytes = 0
  for (const [text, times] of outputsOf(info)) {
    for (const row of rows) bytes += times * lengthOf(row[text]!)
  }
  context.usher.usherGraphqlLimits.results.add(context, bytes)
}

function lengthOf (text: string): number {
  return text.length < SHORT ? text.length : Buffer.byteLength(text)
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

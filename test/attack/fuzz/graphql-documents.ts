import { readFileSync } from 'node:fs'
import {
  buildSchema, getNamedType, getNullableType, isCompositeType, isEnumType, isInputObjectType, isListType, isNonNullType,
  isObjectType, type GraphQLField, type GraphQLInputType, type GraphQLObjectType
} from 'graphql'
import type { Random } from '../random.ts'
import { hostileTexts } from '../values.ts'

const schema = buildSchema(readFileSync(new URL('../../../schema/graphql/schema.graphql', import.meta.url), 'utf8'))
const DEPTH = 5
const ROWS = 4

/** Returns a query that is valid for the SDL, with aliases, fragments and directives. */
export function generateQuery (random: Random, ids: readonly string[]): string {
  const selection = select(random, schema.getQueryType()!, ids, 1 + random.below(DEPTH))
  const name = random.chance(0.3) ? ` ${random.word().replace(/^\d+/, 'q')}q` : ''
  if (random.chance(0.15)) return `query${name} { ...F } fragment F on Query ${selection}`
  return random.chance(0.1) && name === '' ? selection : `query${name} ${selection}`
}

/** Returns a selection set for the result of a mutation or a subscription. */
export function generateSelection (random: Random, typeName: string, ids: readonly string[], depth = 2): string {
  return select(random, schema.getType(typeName) as GraphQLObjectType, ids, depth)
}

function select (random: Random, type: GraphQLObjectType, ids: readonly string[], depth: number): string {
  const fields = Object.values(type.getFields()).filter(({ type }) => depth > 0 || !isCompositeType(getNamedType(type)))
  const chosen = fields.filter(() => random.chance(0.4)).slice(0, 6)
  const selected = chosen.map((field) => writeField(random, field, ids, depth))
  if (selected.length === 0 || random.chance(0.1)) selected.push('__typename')
  if (random.chance(0.05)) selected.push(`... on ${type.name} @skip(if: ${random.chance(0.5)}) { __typename }`)
  return `{ ${selected.join(' ')} }`
}

function writeField (
  random: Random, field: GraphQLField<unknown, unknown>, ids: readonly string[], depth: number
): string {
  const named = getNamedType(field.type)
  const given = field.args.filter(({ type }) => isNonNullType(type) || random.chance(0.5))
  // Without `first` a list has fifty rows, and each nested list fifty more per row.
  const rows = field.args.find(({ name }) => name === 'first')
  const args = [...new Set([...given, ...rows ? [rows] : []])]
    .map(({ name, type }) => `${name}: ${writeValue(random, type, name, ids)}`)
  const alias = random.chance(0.15) ? `a${random.below(1000)}: ` : ''
  const directive = random.chance(0.05) ? ` @include(if: ${random.chance(0.8)})` : ''
  const below = isObjectType(named) ? ` ${select(random, named, ids, depth - 1)}` : ''
  return `${alias}${field.name}${args.length > 0 ? `(${args.join(', ')})` : ''}${directive}${below}`
}

function writeValue (random: Random, type: GraphQLInputType, name: string, ids: readonly string[]): string {
  if (random.chance(0.03)) {
    return random.pick(['null', '[]', '{}', '-1', '1e99', '""', 'true', '$nothing', '9007199254740993'])
  }
  const nullable = getNullableType(type)
  if (isListType(nullable)) return `[${writeValue(random, nullable.ofType, name, ids)}]`
  const named = getNamedType(type)
  if (isEnumType(named)) return random.pick(named.getValues()).name
  if (isInputObjectType(named)) return '{}'
  switch (named.name) {
    case 'Int': return `${name === 'first' && random.chance(0.95) ? random.below(ROWS + 1) : random.below(200) - 50}`
    case 'Boolean': return `${random.chance(0.5)}`
    case 'ID': return JSON.stringify(random.chance(0.8) ? random.pick(ids) : random.pick(hostileTexts))
    default: return JSON.stringify(random.pick(hostileTexts))
  }
}

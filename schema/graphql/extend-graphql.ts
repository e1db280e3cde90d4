import {
  buildSchema, concatAST, extendSchema, getNamedType, isInterfaceType, isObjectType, isUnionType, Kind, parse,
  printSchema, validateSchema, type DefinitionNode, type DocumentNode, type GraphQLField, type GraphQLInterfaceType,
  type GraphQLObjectType, type GraphQLSchema,
} from 'graphql'
import { hostDirectives, markHostField } from '../users/host-fields.ts'
import { extensionError, type HostGraphql } from './host-graphql.ts'

// The types of Usher that a host may extend. Its fields may have those of `references` as their type.
const extensible: ReadonlySet<string> = new Set(['User', 'Post', 'Query', 'Mutation', 'Subscription'])
const references: ReadonlySet<string> = new Set(['User', 'Post', 'PageInfo'])

const mistake = (problem: string) => extensionError('typeDefs', problem)

/** A field that a host has added. */
export interface AddedField { type: GraphQLObjectType | GraphQLInterfaceType, field: GraphQLField<unknown, unknown> }

/** The schema of a mount. */
export interface ExtendedSchema {
  schema: GraphQLSchema
  added: AddedField[]
  /** Returns whether a type is one of Usher's. */
  isUshers: (type: string) => boolean
}

/**
 * Returns the schema of Usher's SDL with what a host adds, and the fields that it adds. They are marked
 * (`markHostField`). Throws an `Error` that names the type and the field if the host's SDL is invalid or changes
 * something of Usher's.
 */
export function extendUsherSchema (sdl: string, host: HostGraphql | undefined): ExtendedSchema {
  if (!host) return { schema: buildSchema(sdl), added: [], isUshers: () => true }
  const document = parseTypeDefs(host)
  const base = buildBase(sdl + hostDirectives, document)
  for (const definition of document.definitions) checkDefinition(base, definition)
  const schema = extend(base, document)
  const added = listAdded(base, schema)
  for (const { type, field } of added) checkAdded(base, schema, type, field)
  checkAbstractTypes(base, schema)
  return { schema, added, isUshers: (type) => base.getType(type) !== undefined }
}

// Without posts, Usher has neither mutations nor subscriptions. The types of those that the host adds are then without
// fields.
function buildBase (sdl: string, { definitions }: DocumentNode): GraphQLSchema {
  const base = buildSchema(sdl)
  const names = new Set(definitions.map((definition) => 'name' in definition ? definition.name?.value : undefined))
  const missing = ['Mutation', 'Subscription'].filter((name) => names.has(name) && !base.getType(name))
  return missing.length === 0 ? base : buildSchema(sdl + missing.map((name) => `\ntype ${name}\n`).join(''))
}

/** Returns the SDL with what a host adds, for the reference. */
export function extendSdl (sdl: string, host: HostGraphql | undefined): string {
  return host ? `${printSchema(extendUsherSchema(sdl, host).schema)}\n` : sdl
}

function parseTypeDefs ({ typeDefs }: HostGraphql): DocumentNode {
  return concatAST(typeDefs.map((part, index) => {
    if (typeof part !== 'string') return part
    try {
      return parse(part)
    } catch (error) {
      const { message, locations } = error as { message: string, locations?: { line: number, column: number }[] }
      const [place] = locations ?? []
      const at = place
        ? ` (line ${place.line}, column ${place.column}${typeDefs.length > 1 ? ` of part ${index + 1}` : ''})`
        : ''
      throw mistake(`cannot be parsed: ${message}${at}`)
    }
  }))
}

function checkDefinition (base: GraphQLSchema, definition: DefinitionNode): void {
  const { kind } = definition
  if (kind === Kind.SCHEMA_DEFINITION || kind === Kind.SCHEMA_EXTENSION) {
    throw mistake('must not define the schema: extend Query, Mutation or Subscription')
  }
  if (kind === Kind.OPERATION_DEFINITION || kind === Kind.FRAGMENT_DEFINITION) {
    throw mistake('must only have definitions of types')
  }
  const name = definition.name.value
  if (kind === Kind.DIRECTIVE_DEFINITION) {
    if (base.getDirective(name)) throw mistake(`redefine the directive @${name} of Usher: choose another name`)
    return
  }
  const known = base.getType(name)
  if (!known) return
  if (!isExtension(definition)) {
    throw mistake(
      `redefine the type ${name} of Usher: ${extensible.has(name) ? `write "extend type ${name}"` : 'choose another name'}`
    )
  }
  if (!extensible.has(name)) {
    throw mistake(`extend ${name}, but of Usher's types only ${[...extensible].join(', ')} can be extended`)
  }
  if (kind !== Kind.OBJECT_TYPE_EXTENSION) {
    throw mistake(`extend ${name} as another kind of type: write "extend type ${name}"`)
  }
  if (definition.interfaces?.length) {
    throw mistake(`give ${name} an interface: use a type of your own with a field of type ${name}`)
  }
  const fields = (known as GraphQLObjectType).getFields()
  const taken = definition.fields?.find((field) => field.name.value in fields)
  if (taken) throw mistake(`redefine the field ${name}.${taken.name.value} of Usher: choose another name`)
}

const isExtension = ({ kind }: DefinitionNode) => kind.endsWith('Extension')

function extend (base: GraphQLSchema, document: DocumentNode): GraphQLSchema {
  let schema: GraphQLSchema
  try {
    schema = extendSchema(base, document)
  } catch (error) {
    throw mistake(`are invalid: ${(error as Error).message}`)
  }
  const problems = validateSchema(schema)
  if (problems.length > 0) throw mistake(`are invalid: ${problems.map(({ message }) => message).join(' ')}`)
  return schema
}

function listAdded (base: GraphQLSchema, schema: GraphQLSchema): AddedField[] {
  const added: AddedField[] = []
  for (const type of Object.values(schema.getTypeMap())) {
    if ((!isObjectType(type) && !isInterfaceType(type)) || type.name.startsWith('__')) continue
    const known = base.getType(type.name) as GraphQLObjectType | undefined
    for (const field of Object.values(type.getFields())) {
      if (!known?.getFields()[field.name]) added.push({ type, field })
    }
  }
  return added
}

function checkAdded (
  base: GraphQLSchema, schema: GraphQLSchema, { name }: AddedField['type'], field: AddedField['field']
): void {
  const { weight, rows, slicing } = markHostField(schema, field)
  const where = `of ${name}.${field.name}`
  if (weight < 0 || (rows ?? 0) < 0) throw mistake(`have a negative cost or size in the directives ${where}`)
  if (field.astNode?.directives?.some(({ name }) => name.value === 'listSize')) {
    const unknown =
      slicing.find((given) => !['first', 'limit'].includes(given) && !field.args.some(({ name }) => name === given))
    if (unknown) throw mistake(`name an argument ${unknown} in @listSize ${where}, which the field does not have`)
  }
  const type = getNamedType(field.type)
  if ((isObjectType(type) || isUnionType(type)) && base.getType(type.name) && !references.has(type.name)) {
    throw mistake(
      `have a field ${name}.${field.name} of type ${type.name}, but of Usher's types only ${[...references].join(', ')} can be used`
    )
  }
}

// Usher reads the users and posts to which fields of the host refer, and checks who may see them. A union would pass
// them by.
function checkAbstractTypes (base: GraphQLSchema, schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isUnionType(type) || base.getType(type.name)) continue
    const own = type.getTypes().find(({ name }) => base.getType(name))
    if (own) {
      throw mistake(
        `have ${own.name} in the union ${type.name}: use a type of your own with a field of type ${own.name}`
      )
    }
  }
}

import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  getOperationAST, getVariableValues, GraphQLError, Kind, Lexer, parse, Source, specifiedRules, TokenKind, validate,
  type DocumentNode, type GraphQLSchema, type OperationTypeNode,
} from 'graphql'
import { checkLimits, limits, refused as overLimit } from '../../schema/graphql-limits.ts'
import { areLarge, checkVariables } from './variables.ts'

// A post's content of 64 KiB within it, every other octet of it escaped. Bounded since mercurius keeps documents.
const LONGEST_DOCUMENT = 256 * 1024

/** An operation as mercurius takes it. */
export interface Operation {
  query: string
  variables: Record<string, unknown> | undefined
  operationName: string | undefined
}

/**
 * Reads `{ query?, mutation?, variables?, operationName? }` (contract 7.2): an operation may come by either key,
 * and a bare selection set under `mutation` is a mutation. Throws a `GraphQLError`, also for large variables that are not those of
 * the operation.
 */
export function readOperation (schema: GraphQLSchema, body: unknown): Operation {
  if (!isObject(body)) throw refused('The body must be a JSON object')
  const { query, mutation, variables, operationName } = body
  if (query != null && mutation != null) throw refused('Send either query or mutation, not both')
  const source = query ?? mutation
  if (typeof source !== 'string' || source.trim() === '') throw refused('query is required, a string')
  if (source.length > LONGEST_DOCUMENT) throw refused(`query must be at most ${LONGEST_DOCUMENT} characters`)
  if (source.length > limits.lines && hasManyLines(source)) throw overLimit(`The document has more than ${limits.lines} lines`)
  if (variables != null && !isObject(variables)) throw refused('variables must be an object')
  if (operationName != null && !isName(operationName)) throw refused('operationName must be a name')
  const document = mutation != null && isBareSelectionSet(source) ? `mutation ${source}` : source
  const operation = {
    // mercurius compiles a document for one of its operations, and keeps it by its text alone: with the name in
    // the text, each operation of a document is one of its own. It also takes for a raw AST what is JSON but not
    // GraphQL, such as `{}`: with a comment it is not JSON either.
    query: `${document}\n#${operationName ?? ''}`,
    variables: variables ?? undefined,
    operationName: operationName ?? undefined,
  }
  if (variables && areLarge(variables)) checkLarge(schema, operation)
  return operation
}

function checkLarge (schema: GraphQLSchema, { query, variables, operationName }: Operation): void {
  let document: DocumentNode
  try {
    document = recallDocument(schema, query).document
  } catch {
    // The execution reports what is wrong with the document.
    return
  }
  checkVariables(schema, document, operationName, variables!)
}

/** A subscription whose document and variables are checked, in a document of its own. */
export interface CheckedSubscription {
  schema: GraphQLSchema
  document: DocumentNode
  variables: Record<string, unknown>
  operationName: string | undefined
}

interface KnownDocument { document: DocumentNode, valid: boolean }

// Of those who come back together each sends the same.
const DOCUMENTS_KEPT = 256
const LONGEST_KEPT = 4096
const documents = new WeakMap<GraphQLSchema, Map<string, KnownDocument>>()

// Parses a document, once where it comes again.
function recallDocument (schema: GraphQLSchema, text: string): KnownDocument {
  const known = documents.get(schema) ?? new Map<string, KnownDocument>()
  documents.set(schema, known)
  const found = known.get(text) ?? { document: parse(text, { maxTokens: limits.tokens }), valid: false }
  if (text.length <= LONGEST_KEPT) known.set(text, found)
  // Full: the oldest goes.
  if (known.size > DOCUMENTS_KEPT) known.delete(known.keys().next().value!)
  return found
}

function ensureValid (usher: FastifyInstance, request: FastifyRequest, known: KnownDocument): void {
  if (known.valid) return
  usher.usherGraphqlLimits.documents.charge(request.ip, checkLimits(known.document))
  const [problem] = validate(usher.graphql.schema, known.document, specifiedRules, { maxErrors: 1 })
  if (problem) throw problem
  known.valid = true
}

/** Returns the type of an operation. Throws a `GraphQLError`. */
export function typeOf (usher: FastifyInstance, { query, operationName }: Operation): OperationTypeNode {
  const operation = getOperationAST(recallDocument(usher.graphql.schema, query).document, operationName)
  if (!operation) throw new GraphQLError('operationName must name one of the operations')
  return operation.operation
}

/**
 * Checks a subscription, which mercurius does not run. Throws a `GraphQLError`, the first problem, `TooManyDocuments` or
 * `OperationTooCostly`.
 */
export function checkSubscription (usher: FastifyInstance, request: FastifyRequest, { query, variables = {}, operationName }: Operation): CheckedSubscription {
  const { schema } = usher.graphql
  const known = recallDocument(schema, query)
  ensureValid(usher, request, known)
  const { document } = known
  const { errors, coerced } = getVariableValues(schema, getOperationAST(document, operationName)!.variableDefinitions!, variables)
  if (errors) throw errors[0]
  usher.usherGraphqlLimits.checkCost({ schema, document, operationName, variables: coerced })
  return { schema, document, variables: coerced, operationName }
}

/**
 * `$first: Int! = 10` becomes `$first: Int = 10`. graphql-jit asks for a variable that must not be null even where
 * it has a default, which the specification does not (GraphQL 6.1.2). Whoever sends null to it is refused by the
 * field, where that matters.
 */
export function relaxDefaults ({ definitions }: DocumentNode): void {
  for (const definition of definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue
    for (const variable of definition.variableDefinitions!) {
      const { type, defaultValue } = variable
      if (defaultValue && type.kind === Kind.NON_NULL_TYPE) Object.assign(variable, { type: type.type })
    }
  }
}

const refused = (message: string) => new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })

/** Whether a value is a JSON object. */
export function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function hasManyLines (source: string): boolean {
  return source.split(/\r\n|[\n\r]/, limits.lines + 1).length > limits.lines
}

function isName (value: unknown): value is string {
  return typeof value === 'string' && /^[_A-Za-z]\w*$/.test(value)
}

function isBareSelectionSet (source: string): boolean {
  try {
    return new Lexer(new Source(source)).advance().kind === TokenKind.BRACE_L
  } catch {
    // Not GraphQL at all: the parser says so, in its words.
    return false
  }
}

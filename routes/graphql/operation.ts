import {
  getOperationAST, getVariableValues, GraphQLError, Kind, Lexer, Source, TokenKind,
  type DocumentNode, type GraphQLSchema, type OperationTypeNode,
} from 'graphql'
import { readDocument } from '../../schema/graphql-limits.ts'

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
 * and a bare selection set under `mutation` is a mutation. Throws a `GraphQLError`.
 */
export function readOperation (body: unknown): Operation {
  if (!isObject(body)) throw refused('The body must be a JSON object')
  const { query, mutation, variables, operationName } = body
  if (query != null && mutation != null) throw refused('Send either query or mutation, not both')
  const source = query ?? mutation
  if (typeof source !== 'string' || source.trim() === '') throw refused('query is required, a string')
  if (source.length > LONGEST_DOCUMENT) throw refused(`query must be at most ${LONGEST_DOCUMENT} characters`)
  if (variables != null && !isObject(variables)) throw refused('variables must be an object')
  if (operationName != null && !isName(operationName)) throw refused('operationName must be a name')
  const document = mutation != null && isBareSelectionSet(source) ? `mutation ${source}` : source
  return {
    // mercurius compiles a document for one of its operations, and keeps it by its text alone: with the name in
    // the text, each operation of a document is one of its own. It also takes for a raw AST what is JSON but not
    // GraphQL, such as `{}`: with a comment it is not JSON either.
    query: `${document}\n#${operationName ?? ''}`,
    variables: variables ?? undefined,
    operationName: operationName ?? undefined,
  }
}

/** An operation whose document and variables are checked, in a document of its own. */
export interface CheckedOperation {
  type: OperationTypeNode
  schema: GraphQLSchema
  document: DocumentNode
  variables: Record<string, unknown>
  operationName: string | undefined
}

// Of those who come back together each sends the same.
const DOCUMENTS_KEPT = 256
const LONGEST_KEPT = 4096
const documents = new WeakMap<GraphQLSchema, Map<string, DocumentNode>>()

/** Parses and validates a document, once where it comes again. Throws a `GraphQLError`. */
function recallDocument (schema: GraphQLSchema, text: string): DocumentNode {
  const known = documents.get(schema) ?? new Map<string, DocumentNode>()
  documents.set(schema, known)
  const document = known.get(text) ?? readDocument(schema, text)
  if (text.length <= LONGEST_KEPT) known.set(text, document)
  // Full: the oldest goes.
  if (known.size > DOCUMENTS_KEPT) known.delete(known.keys().next().value!)
  return document
}

/** Checks an operation that does not come by mercurius's route. Throws a `GraphQLError`, the first problem. */
export function checkOperation (schema: GraphQLSchema, { query, variables = {}, operationName }: Operation): CheckedOperation {
  const document = recallDocument(schema, query)
  const operation = getOperationAST(document, operationName)
  if (!operation) throw new GraphQLError('operationName must name one of the operations')
  const { errors, coerced } = getVariableValues(schema, operation.variableDefinitions!, variables)
  if (errors) throw errors[0]
  return { type: operation.operation, schema, document, variables: coerced, operationName }
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

import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  getOperationAST, getVariableValues, GraphQLError, Kind, Lexer, parse, Source, specifiedRules, TokenKind, validate,
  type DocumentNode, type GraphQLSchema, type OperationTypeNode,
} from 'graphql'
import { clientNetworksOf } from '../../../plugins/http/client-info.ts'
import { checkLimits, limits, limitExceeded } from '../../../schema/graphql/limits.ts'
import { readIdempotencyKey } from '../../../schema/http/idempotency.ts'
import { CONTENT_BYTES } from '../../../schema/strings/text.ts'
import { forgetText } from './locations.ts'
import { areLarge, checkVariables } from './variables.ts'

// Characters. A document may contain the content of a post in which every second byte is escaped. The length is
// limited, because mercurius caches documents.
const LONGEST_DOCUMENT = 4 * CONTENT_BYTES

/** An operation in the form that `app.graphql` accepts. */
export interface Operation {
  query: string
  variables: Record<string, unknown> | undefined
  operationName: string | undefined
  idempotencyKey?: string | undefined
}

/**
 * Parses the body `{ query?, mutation?, variables?, operationName? }` (contract 7.2). Either key may carry the
 * operation, and a bare selection set under `mutation` is a mutation. Throws a `GraphQLError` if the body is invalid,
 * or if large variables do not match the operation.
 * @param headers those of a request that is one operation. They may have the idempotency key, as `extensions` may
 */
export function readOperation (schema: GraphQLSchema, body: unknown, headers: Record<string, unknown> = {}): Operation {
  if (!isObject(body)) throw badRequest('The body must be a JSON object')
  const { query, mutation, extensions } = body
  // Forms and query strings have no other way to say that there is no name, and PHP has the same value for `{}` and
  // `[]`.
  const operationName = body['operationName'] === '' ? undefined : body['operationName']
  const variables = isEmptyArray(body['variables']) ? {} : body['variables']
  if (query == null && mutation == null && isPersisted(extensions)) throw persistedQueryNotSupported()
  if (query != null && mutation != null) throw badRequest('Send either query or mutation, not both')
  const source = query ?? mutation
  if (typeof source !== 'string' || source.trim() === '') throw badRequest('query is required and must be a string')
  if (source.length > LONGEST_DOCUMENT) throw badRequest(`query must be at most ${LONGEST_DOCUMENT} characters`)
  if (source.length > limits.lines && hasManyLines(source)) {
    throw limitExceeded(`The document has more than ${limits.lines} lines`)
  }
  if (variables != null && !isObject(variables)) throw badRequest('variables must be an object')
  if (operationName != null && !isName(operationName)) throw badRequest('operationName must be a name')
  const document = mutation != null && isBareSelectionSet(source) ? `mutation ${source}` : source
  const operation = {
    // mercurius compiles one operation of a document and caches it by the document's text only, so the name of the
    // operation is added to the text. mercurius also treats a text that is JSON but not GraphQL, such as `{}`, as a raw
    // AST. With a comment the text is never JSON.
    query: `${document}\n#${operationName ?? ''}`,
    variables: variables ?? undefined,
    operationName: operationName ?? undefined,
    idempotencyKey: readKey(headers['idempotency-key'], extensions),
  }
  if (variables && areLarge(variables)) checkLarge(schema, operation)
  return operation
}

function readKey (header: unknown, extensions: unknown): string | undefined {
  const given = isObject(extensions) ? extensions['idempotencyKey'] ?? undefined : undefined
  try {
    const key = readIdempotencyKey(given, 'extensions.idempotencyKey')
    const other = readIdempotencyKey(header)
    if (key === undefined || other === undefined || key === other) return key ?? other
  } catch (error) {
    throw badRequest((error as Error).message)
  }
  throw badRequest('Idempotency-Key and extensions.idempotencyKey must be the same')
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

/** A subscription with a valid document and coerced variables. */
export interface CheckedSubscription {
  schema: GraphQLSchema
  document: DocumentNode
  variables: Record<string, unknown>
  operationName: string | undefined
}

interface KnownDocument { document: DocumentNode, valid: boolean }

// Subscribers that reconnect at the same time often send the same document, so parsed documents are cached.
const DOCUMENTS_KEPT = 256
// Characters.
const LONGEST_KEPT = 4096
const documents = new WeakMap<GraphQLSchema, Map<string, KnownDocument>>()

// Returns a parsed document from the cache, or parses it.
function recallDocument (schema: GraphQLSchema, text: string): KnownDocument {
  const known = documents.get(schema) ?? new Map<string, KnownDocument>()
  documents.set(schema, known)
  const found = known.get(text) ?? { document: parse(text, { maxTokens: limits.tokens }), valid: false }
  if (text.length <= LONGEST_KEPT) known.set(text, found)
  // The cache is full, so the oldest document is removed.
  if (known.size > DOCUMENTS_KEPT) known.delete(known.keys().next().value!)
  return found
}

function ensureValid (usher: FastifyInstance, request: FastifyRequest, known: KnownDocument): void {
  if (known.valid) return
  usher.usherGraphql.limits.documents.charge(clientNetworksOf(request), checkLimits(known.document))
  const [problem] = validate(usher.graphql.schema, known.document, specifiedRules, { maxErrors: 1 })
  if (problem) throw problem
  forgetText(known.document)
  known.valid = true
}

/** Returns the type of an operation. Throws a `GraphQLError`. */
export function typeOf (usher: FastifyInstance, { query, operationName }: Operation): OperationTypeNode {
  const operation = getOperationAST(recallDocument(usher.graphql.schema, query).document, operationName)
  if (!operation) throw new GraphQLError('operationName must name one of the operations')
  return operation.operation
}

/**
 * Validates a subscription, coerces its variables and checks its cost. This is necessary because mercurius does not run
 * subscriptions here. Throws a `GraphQLError` for the first problem, `TooManyDocuments` or `OperationTooCostly`.
 */
export function checkSubscription (
  usher: FastifyInstance, request: FastifyRequest, { query, variables = {}, operationName }: Operation
): CheckedSubscription {
  const { schema } = usher.graphql
  const known = recallDocument(schema, query)
  ensureValid(usher, request, known)
  const { document } = known
  const { errors, coerced } = getVariableValues(
    schema, getOperationAST(document, operationName)!.variableDefinitions!, variables
  )
  if (errors) throw errors[0]
  usher.usherGraphql.limits.checkCost({ schema, document, operationName, variables: coerced })
  return { schema, document, variables: coerced, operationName }
}

/**
 * Makes variables with a default nullable: `$first: Int! = 10` becomes `$first: Int = 10`. graphql-jit requires a value
 * for a non-null variable even if it has a default, which contradicts the specification (GraphQL 6.1.2). A field whose
 * argument must not be null still rejects null.
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

const badRequest = (message: string) => new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })

/** Returns whether a value is a JSON object. */
export function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Clients that send the hash of a query instead of the query know both texts, and send the query then.
const isPersisted = (extensions: unknown): boolean => isObject(extensions) && isObject(extensions['persistedQuery'])
const persistedQueryNotSupported = () =>
  new GraphQLError('PersistedQueryNotSupported', { extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } })

const isEmptyArray = (value: unknown): boolean => Array.isArray(value) && value.length === 0

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
    // The text is not GraphQL. The parser reports the error later.
    return false
  }
}

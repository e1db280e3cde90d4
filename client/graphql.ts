import { MEMBERSHIP_ENDED, UsherError } from './error.ts'
import type { UsherClient } from './index.ts'
import { createKey } from './platform.ts'
import { backoff, wait } from './retry.ts'

/** The result of a GraphQL operation. */
export interface GraphqlResult<Data = Record<string, unknown>> {
  data?: Data | null
  errors?: readonly { message: string, extensions?: { code?: string } }[] | undefined
}

/** The codes of errors that are over after a while. */
export const TEMPORARY = new Set([
  'DATABASE_UNAVAILABLE', 'OVERLOADED', 'TOO_MANY_CONNECTIONS', 'TOO_MANY_SUBSCRIPTIONS', 'TOO_MANY_DOCUMENTS',
  'IDEMPOTENCY_KEY_IN_USE',
])
/** The codes of a token that is not valid, or was not sent. */
export const NO_SESSION = new Set(['UNAUTHENTICATED', 'INVALID_TOKEN', MEMBERSHIP_ENDED])
const TRIES = 5

export interface GraphqlOptions {
  signal?: AbortSignal
  /** Default: a new one. Pass one that is stored to repeat a mutation after a reload. */
  idempotencyKey?: string
}

/**
 * Sends a query or a mutation. A mutation has an idempotency key, so it is repeated if its response is lost. Throws an
 * `UsherError` if the result has errors.
 */
export async function graphql<Data = Record<string, unknown>> (
  client: UsherClient, query: string, variables?: object, options: GraphqlOptions = {}
): Promise<Data> {
  const { signal, idempotencyKey = createKey() } = options
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey }
  const init = { method: 'POST', headers, body: JSON.stringify({ query, variables }), ...signal && { signal } }
  for (let tried = 0; ; tried++) {
    const token = await client.session.token()
    const result = await (await client.fetch('/graphql', init)).json() as GraphqlResult<Data>
    if (!result.errors) return result.data!
    const error = toGraphqlError(result)
    if (tried >= TRIES) throw error
    if (TEMPORARY.has(error.code!)) await wait(backoff(tried, {}), signal)
    else if (!NO_SESSION.has(error.code!) || tried > 1 || !await client.session.renew(token)) throw error
  }
}

/** Creates the error of a result that has errors. */
export const toGraphqlError = ({ errors = [] }: GraphqlResult<unknown>) =>
  new UsherError(200, errors.map(({ message }) => message), errors[0]?.extensions?.code)

/** The body of a failed response: `{ errors }` for 400, otherwise `{ error, code? }`. */
interface FailureBody extends SecondFactorDemand { error?: string, code?: string, errors?: readonly string[] }

/** What a login needs whose code is `SECOND_FACTOR_REQUIRED`. */
interface SecondFactorDemand { challenge?: string, methods?: readonly string[] }

/** The code of a request that is not repeated, because somebody else has logged in since. */
export const USER_CHANGED = 'USER_CHANGED'

/** The code of a request that is not repeated, because the client acts for another organisation since. */
export const ORGANIZATION_CHANGED = 'ORGANIZATION_CHANGED'

/** The code of a token whose membership has ended, or has another role now. */
export const MEMBERSHIP_ENDED = 'MEMBERSHIP_ENDED'

/**
 * A request that the server has rejected, or a session that is over. Failures of the network are the `TypeError` of
 * `fetch`.
 */
export class UsherError extends Error {
  override readonly name = 'UsherError'
  /** The HTTP status. Errors of GraphQL have 200. */
  readonly status: number
  /** A stable upper-case identifier, such as `USER_NOT_FOUND`. */
  readonly code: string | undefined
  /** One sentence per problem. */
  readonly problems: readonly string[]
  /** With the code `SECOND_FACTOR_REQUIRED`, what `completeLogin` takes besides the second factor. */
  readonly challenge: string | undefined
  /** The second factors that the user has: `totp`, `recovery-code`, `passkey`. */
  readonly methods: readonly string[]

  constructor (
    status: number, problems: readonly string[], code?: string, { challenge, methods = [] }: SecondFactorDemand = {}
  ) {
    super(problems.join('; ') || `The server responded with ${status}`)
    this.status = status
    this.problems = problems
    this.code = code
    this.challenge = challenge
    this.methods = methods
  }
}

/**
 * Creates the error of a failed response from its parsed body, which may be anything, because a proxy may have sent it.
 */
export function toError (status: number, body: unknown): UsherError {
  const { error, code, errors, ...demand } = (typeof body === 'object' && body !== null ? body : {}) as FailureBody
  return new UsherError(status, errors ?? (error === undefined ? [] : [error]), code, demand)
}

/** Reads the error of a failed response. */
export async function readError (response: Response): Promise<UsherError> {
  return toError(response.status, await response.json().catch(() => undefined))
}

/** The result of a typed call: `data` on success, otherwise `error`. */
interface Result<Data> { data?: Data, error?: unknown, response: Response }

/** Returns the data of a typed call. Throws an `UsherError` if the server has rejected it. */
export async function unwrap<Data> (call: PromiseLike<Result<Data>> | Result<Data>): Promise<NonNullable<Data>> {
  const { data, error, response } = await call
  if (!response.ok) throw toError(response.status, error)
  return data as NonNullable<Data>
}

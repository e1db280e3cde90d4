import { ORGANIZATION_CHANGED, USER_CHANGED, UsherError } from './error.ts'
import { createKey } from './platform.ts'

/** How often and how long the client tries again. */
export interface RetryOptions {
  /** The number of tries of a request, the first included. Default: 5. */
  tries?: number
  /** The longest wait before the second try, in milliseconds. It doubles with every try. Default: 200. */
  baseMs?: number
  /**
   * The longest wait before a try, in milliseconds. If `Retry-After` is longer, the response is returned. Default:
   * 10000.
   */
  maxMs?: number
}

// What requests of these methods change does not depend on how often they arrive (RFC 9110, 9.2.2). PATCH is a merge
// patch here.
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE'])
// The writes by POST of which the server stores the result for an idempotency key.
const KEYED = /(\/api\/(users(\/[^/]+\/invitation)?|posts|uploads)|\/graphql)$/
const KEY = 'Idempotency-Key'

/** Adds an idempotency key to a request by POST that accepts one, unless the caller has set it. */
export function addKey ({ method, url, headers }: Request, to: Headers): void {
  if (method === 'POST' && !headers.has(KEY) && KEYED.test(new URL(url).pathname)) to.set(KEY, createKey())
}

/** Returns whether a request may be sent again after its response was lost. */
export const mayRepeat = (method: string, headers: Headers): boolean => IDEMPOTENT.has(method) || headers.has(KEY)

/** Waits. Rejects with the signal's reason when it is aborted. */
export function wait (milliseconds: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => { clearTimeout(timer); reject(signal!.reason) }
    const timer = setTimeout(() => { signal?.removeEventListener('abort', abort); resolve() }, milliseconds)
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/**
 * Returns the wait before another try: between half and all of the current limit, so that clients do not return all at
 * once.
 */
export function backoff (tried: number, { baseMs = 200, maxMs = 10_000 }: RetryOptions): number {
  return Math.min(maxMs, baseMs * 2 ** tried) * (0.5 + Math.random() / 2)
}

/**
 * Sends a request until it has a response that is not temporary. Network failures, 502, 503 and 504, and what
 * `Retry-After` announces for 409 and 429 are temporary. Returns the last response, or throws the last failure of the
 * network.
 */
export async function repeat (
  attempt: () => Promise<Response>, options: RetryOptions, signal: AbortSignal
): Promise<Response> {
  const { tries = 5, maxMs = 10_000 } = options
  for (let tried = 0; ; tried++) {
    let pause = backoff(tried, options)
    try {
      const response = await attempt()
      const after = retryAfter(response)
      // 409 without `Retry-After` is a conflict that another try does not resolve, such as an address that is taken.
      const isTemporary =
        [502, 503, 504].includes(response.status) || (after !== undefined && [409, 429].includes(response.status))
      if (!isTemporary || tried + 1 >= tries || (after ?? 0) > maxMs) return response
      pause = Math.max(pause, after ?? 0)
      // The connection can be used again only after the body was read or cancelled.
      await response.body?.cancel()
    } catch (error) {
      if (signal.aborted || tried + 1 >= tries || isFinal(error)) throw error
    }
    await wait(pause, signal)
  }
}

const FINAL: ReadonlySet<string | undefined> = new Set([USER_CHANGED, ORGANIZATION_CHANGED])

const isFinal = (error: unknown): boolean => error instanceof UsherError && FINAL.has(error.code)

function retryAfter ({ headers }: Response): number | undefined {
  const value = headers.get('Retry-After')
  if (value === null) return undefined
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}

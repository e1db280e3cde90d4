import type { IncomingMessage } from 'node:http'
import { ProviderUnavailable } from '../../../schema/sign-in/providers.ts'
import type { SendPublic } from '../../support/public-request.ts'

// The documents and tokens of providers have some kilobytes.
const BODY_BYTES = 256 * 1024

/** The part of the global `fetch` that the libraries for OpenID Connect use. */
export type Fetch = (url: string, options: {
  method?: string
  headers?: ConstructorParameters<typeof Headers>[0]
  body?: unknown
  signal?: AbortSignal | null | undefined
}) => Promise<Response>

/**
 * Returns a function like `fetch` for the requests to providers: without redirects, to public addresses only, with a
 * deadline, and with responses of at most 256 KiB. It throws `ProviderUnavailable` if there is no response, or one that
 * says that the provider does not work.
 */
export function createFetch (
  send: SendPublic, { timeoutMs, isHttpAllowed }: { timeoutMs: number, isHttpAllowed: boolean }
): Fetch {
  return async (given, { method = 'GET', headers, body, signal }) => {
    const url = new URL(given)
    if (url.protocol !== 'https:' && !(isHttpAllowed && url.protocol === 'http:')) {
      throw new Error('the address of a provider must be https:')
    }
    const text = body == null ? undefined : `${body as string | URLSearchParams}`
    const deadline = AbortSignal.timeout(timeoutMs)
    const request = {
      method,
      headers: {
        'user-agent': 'Usher',
        ...Object.fromEntries(new Headers(headers)),
        ...text !== undefined && { 'content-length': String(Buffer.byteLength(text)) },
      },
      body: text,
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    }
    const [response, bytes] = await send(url, request)
      .then(async (response) => [response, await read(response)] as const)
      .catch((cause) => { throw new ProviderUnavailable({ cause }) })
    const status = response.statusCode!
    if (status >= 500 || status === 429) {
      throw new ProviderUnavailable({ cause: new Error(`the provider has answered ${status}`) })
    }
    const hasBody = ![204, 205, 304].includes(status) && bytes.length > 0
    return new Response(hasBody ? new Uint8Array(bytes) : null, { status, headers: headersOf(response) })
  }
}

async function read (response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    // Leaving the loop destroys the response.
    if (size > BODY_BYTES) throw new Error(`the response of the provider has over ${BODY_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function headersOf ({ headers }: IncomingMessage): Headers {
  const copy = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) copy.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  return copy
}

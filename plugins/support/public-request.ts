import type { IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { createDnsResolve, createLookup, requirePublicHost, resolveBySystem, type Resolve } from './addresses.ts'

// An import of this module reads all of its members, which loads the HTTP client of Node.js.
const { request: requestHttp } = process.getBuiltinModule('node:http')

const HEADER_BYTES = 16 * 1024

export interface PublicRequestOptions {
  /** Whether addresses that are not public are allowed. */
  allowPrivateAddresses: boolean
  /** How long the connection, with its TLS handshake, may take. */
  connectMs: number
  /** How long a DNS server may take. */
  dnsMs: number
  /** Resolves host names in place of the system's DNS servers. */
  resolve?: Resolve | undefined
}

/** What is sent. */
export interface PublicRequest {
  method: string
  headers: Record<string, string>
  body?: string | Buffer | undefined
  signal: AbortSignal
}

export type SendPublic = (url: URL, request: PublicRequest) => Promise<IncomingMessage>

/**
 * Returns a function that sends a request to an address that somebody else has chosen, and resolves with the response,
 * whose body has not been read. It neither follows redirects nor connects to addresses that are not public, and each
 * request has a connection of its own, to an address that was just checked.
 */
export function createPublicRequest (
  { allowPrivateAddresses, connectMs, dnsMs, resolve }: PublicRequestOptions
): SendPublic {
  const lookup = createLookup(
    resolve ?? (allowPrivateAddresses ? resolveBySystem : createDnsResolve(dnsMs)), allowPrivateAddresses
  )

  return async (url, { method, headers, body, signal }) => {
    if (!allowPrivateAddresses) requirePublicHost(url)
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const start = url.protocol === 'https:' ? requestHttps : requestHttp
    // Without an agent, there is a new connection.
    const request = start(url, { method, agent: false, lookup, headers, signal, maxHeaderSize: HEADER_BYTES })
    const timer = setTimeout(
      () => request.destroy(new Error(`the receiver could not be connected within ${connectMs} ms`)), connectMs
    )
    const connected = () => clearTimeout(timer)
    request.on('socket', (socket) => socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', connected))
    request.on('close', connected)
    request.on('response', resolve)
    request.on('error', reject)
    // After 101, which nothing here asks for, Node.js closes the connection without an error.
    request.on('close', () => reject(new Error('the connection was closed without a response')))
    request.end(body)
    return promise
  }
}

import type { FastifyRequest } from 'fastify'
import type { ClientInfo } from '../db/sessions.ts'

// Behind a proxy the address is text from a header, and `User-Agent` may be as long as a request's headers may be.
const ADDRESS_CHARACTERS = 64
const USER_AGENT_CHARACTERS = 512

/**
 * Returns the address and user agent of a request, truncated to what is stored. The address is empty if the client has
 * disconnected, or if it connected through a Unix domain socket.
 */
export function clientInfoOf ({ ip, headers: { 'user-agent': userAgent = '' } }: FastifyRequest): ClientInfo {
  const address = (ip as string | undefined) ?? ''
  return { address: address.slice(0, ADDRESS_CHARACTERS), userAgent: userAgent.slice(0, USER_AGENT_CHARACTERS) }
}

import type { FastifyRequest } from 'fastify'
import type { ClientInfo } from '../db/sessions.ts'

// Behind a proxy an address is the client's text, and a `User-Agent` may be as long as a head may be.
const ADDRESS_CHARACTERS = 64
const USER_AGENT_CHARACTERS = 512

/** Where a request comes from, as it is stored. The address is empty for a client that is gone, or has come through a socket of the file system. */
export function clientInfoOf ({ ip, headers: { 'user-agent': userAgent = '' } }: FastifyRequest): ClientInfo {
  const address = (ip as string | undefined) ?? ''
  return { address: address.slice(0, ADDRESS_CHARACTERS), userAgent: userAgent.slice(0, USER_AGENT_CHARACTERS) }
}

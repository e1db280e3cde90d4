import type { FastifyRequest } from 'fastify'
import type { ClientInfo } from '../../db/access/sessions.ts'
import { addressOf, networksOf, type Network } from '../../schema/http/network.ts'

// `User-Agent` may be as long as a request's headers may be.
const USER_AGENT_CHARACTERS = 512
// A caller may wait in a queue.
const ACCEPT_LANGUAGE_CHARACTERS = 256

/** A request, or what is known of it. Behind a proxy, `ip` is text from a header, so nothing else reads it. */
type Requested = Pick<FastifyRequest, 'ip'>

/**
 * Returns the client address of a request. It is empty if the client has disconnected, or has connected through a Unix
 * domain socket.
 */
export const clientAddressOf = ({ ip }: Requested): string => addressOf(ip)

/** Returns the networks of the client of a request, narrowest first. */
export const clientNetworksOf = ({ ip }: Requested): readonly Network[] => networksOf(ip)

/**
 * Returns the client address and user agent of a request, as they are stored, and the languages that its user reads.
 */
export function clientInfoOf (request: FastifyRequest): ClientInfo & { acceptLanguage: string } {
  const { 'user-agent': userAgent = '', 'accept-language': acceptLanguage = '' } = request.headers
  return {
    address: clientAddressOf(request),
    userAgent: userAgent.slice(0, USER_AGENT_CHARACTERS),
    acceptLanguage: acceptLanguage.slice(0, ACCEPT_LANGUAGE_CHARACTERS),
  }
}

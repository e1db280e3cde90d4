import type { FastifyRequest } from 'fastify'

const NAME = 'x-forwarded-proto'

/**
 * Reduces `X-Forwarded-Proto: https,http`, to which each proxy in a row has added how it was asked, to the entry of the
 * first proxy that is trusted: the one that the client has asked. Fastify takes the last entry, in the case in which it
 * was sent. Entries before it may be from the client.
 */
export function reduceForwardedProtocol (request: FastifyRequest): void {
  const given = request.raw.headers[NAME]
  if (typeof given !== 'string') return
  const entries = given.toLowerCase().split(',').map((entry) => entry.trim())
  // The addresses are those of the trusted proxies, the last one first, and of the client, or of the last proxy alone.
  const proxies = Math.max(1, (request.ips?.length ?? 1) - 1)
  request.raw.headers[NAME] = entries[Math.max(0, entries.length - proxies)]
}

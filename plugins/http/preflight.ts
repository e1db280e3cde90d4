import type { FastifyRequest } from 'fastify'
import { OriginNotAllowed } from '../../schema/http/errors.ts'
import { createSampler } from '../support/sampler.ts'

const ADVICE = 'A page may not send requests, because its origin is not allowed: a node allows those of the setting ' +
  'CORS_ORIGIN, a host those of its own plugin, such as @fastify/cors'
const LONGEST_ORIGIN = 200

const isNew = createSampler()

/**
 * Throws `OriginNotAllowed` for a preflight request, with which a browser asks whether a page of another origin may
 * send a request. Plugins that allow origins have answered the others by then.
 */
export function rejectPreflight ({ method, headers, log }: FastifyRequest): void {
  const { origin } = headers
  if (method !== 'OPTIONS' || origin === undefined || !headers['access-control-request-method']) return
  const named = origin.slice(0, LONGEST_ORIGIN)
  if (isNew(named)) log.warn({ origin: named }, ADVICE)
  throw new OriginNotAllowed()
}

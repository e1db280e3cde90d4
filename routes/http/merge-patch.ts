import type { FastifyReply, FastifyRequest } from 'fastify'
import { hasBody } from '../../plugins/http/raw/body-deadline.ts'
import { UnsupportedMediaType } from '../../schema/http/errors.ts'

/** RFC 7396. PATCH accepts plain JSON as well. */
export const MERGE_PATCH = 'application/merge-patch+json'
export const PATCH_TYPES = [MERGE_PATCH, 'application/json']

/**
 * An `onRequest` hook that throws `UnsupportedMediaType`, with `Accept-Patch`, for a body of another type (contract
 * 10.3).
 */
export async function requirePatchType ({ headers, raw }: FastifyRequest, reply: FastifyReply): Promise<void> {
  const type = headers['content-type']?.split(';', 1)[0]!.trim().toLowerCase()
  if (type === undefined ? !hasBody(raw) : PATCH_TYPES.includes(type)) return
  reply.header('accept-patch', PATCH_TYPES.join(', '))
  throw new UnsupportedMediaType(PATCH_TYPES.join(' or '))
}

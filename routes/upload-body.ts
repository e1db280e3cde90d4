import { PassThrough, type Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { InternalError } from '../schema/http/errors.ts'

/** A body that is read as a multipart form. */
export type FormBody = Readable & Pick<FastifyRequest['raw'], 'headers'>

/**
 * Returns the body of a request for the parser of forms, which reads it later. A `preParsing` hook of the host may
 * have begun to read it for itself, or have replaced it: then this reads it from now on, no faster than the parser.
 * Throws `InternalError` if a hook has consumed it.
 */
export function claimBody ({ raw }: FastifyRequest, payload: Readable): FormBody {
  if (payload === raw && raw.readableFlowing === null) return raw
  if (payload.readableEnded) {
    const cause = new Error('A preParsing hook of the host has consumed the body and returned no other stream')
    throw new InternalError({ cause })
  }
  const body = Object.assign(new PassThrough(), { headers: raw.headers })
  // `pipe` is not used: a reader such as raw-body removes all pipes of the stream, and pauses it, when its own limit
  // is exceeded.
  payload.on('data', (chunk) => { if (!body.write(chunk)) payload.pause() })
  payload.on('pause', () => {
    if (!body.writableNeedDrain && payload.listenerCount('data') === 1) setImmediate(() => payload.resume())
  })
  body.on('drain', () => payload.resume())
  payload.once('end', () => body.end())
  payload.once('error', (error) => body.destroy(error))
  payload.once('close', () => { if (!payload.readableEnded) body.destroy() })
  return body
}

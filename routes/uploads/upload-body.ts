import { PassThrough, type Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { IncomingBytes } from '../../plugins/uploads/resumable.ts'
import { BodyStalled, ClientDisconnected, InternalError } from '../../schema/http/errors.ts'

/** A body that is read as a multipart form, or as the bytes of a file. */
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

/** How fast a body must arrive. */
export interface Pace {
  /** Milliseconds without a byte after which the body is rejected. */
  idleMs: number
  /** Least bytes that must arrive in each period of `idleMs`. */
  minBytesPerPeriod: number
}

/**
 * Calls `onStall` if a body stalls, or is so slow that it merely occupies its connection. The client is not to blame
 * while the storage is slower than the client. Returns a function that stops watching.
 */
export function watchPace (body: Readable, { idleMs, minBytesPerPeriod }: Pace, onStall: () => void): () => void {
  let received = 0
  let receivedBefore = 0
  // Whether this node has stopped to read, since the last look, because the storage is slower than the client.
  let hasPaused = false
  const timer = setTimeout(() => {
    if (body.isPaused()) timer.refresh()
    else stall()
  }, idleMs)
  const rate = setInterval(() => {
    if (received - receivedBefore < minBytesPerPeriod && !hasPaused && !body.isPaused()) stall()
    receivedBefore = received
    hasPaused = body.isPaused()
  }, idleMs)
  body.on('data', count)
  body.on('pause', pause)
  // After the end of the body, only the disk takes time.
  body.once('end', release)
  return release

  function count (chunk: Uint8Array): void {
    received += chunk.length
    timer.refresh()
  }

  function pause (): void {
    hasPaused = true
  }

  function stall (): void {
    release()
    onStall()
  }

  function release (): void {
    clearTimeout(timer)
    clearInterval(rate)
    body.off('data', count)
    body.off('pause', pause)
  }
}

/** A body whose bytes are kept also if the others never arrive. */
export interface ReceivedBody extends IncomingBytes {
  /** Stops reading. The rest of the body is left to the server. */
  release (): void
}

/**
 * Reads a body, no faster than its `chunks`. If it is cut off or stalls, they end, and `failure` says why. Without a
 * body, there are none.
 */
export function receiveBody (body: FormBody | undefined, pace: Pace): ReceivedBody {
  const passed = new PassThrough()
  // An error without a reader would end the process. Whoever reads gets it as well.
  passed.on('error', () => {})
  let failure: Error | undefined
  const fail = (error: Error) => {
    failure ??= error
    release()
    passed.end()
  }
  const onClose = () => fail(new ClientDisconnected())
  const unwatch = body ? watchPace(body, pace, () => fail(new BodyStalled())) : () => {}
  if (!body) passed.end()
  else if (body.destroyed) fail(new ClientDisconnected())
  else {
    body.once('error', onClose).once('close', onClose).once('end', () => {
      release()
      passed.end()
    }).pipe(passed, { end: false })
  }

  function release (): void {
    unwatch()
    body?.off('close', onClose).unpipe(passed)
  }

  return {
    chunks: passed[Symbol.asyncIterator](),
    get failure () { return failure },
    stop (error) {
      release()
      passed.destroy(error)
    },
    release,
  }
}

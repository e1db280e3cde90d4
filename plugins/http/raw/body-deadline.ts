import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, onRouteHookHandler, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { BodyStalled } from '../../../schema/http/errors.ts'
import { OFFSET_TYPE } from '../../../schema/uploads/resumable-upload.ts'
import { rejectionOfCoding } from '../content-coding.ts'

/** Returns whether a request has a body (RFC 9112 6.3). An empty one counts as absent (contract 1.9). */
export function hasBody ({ headers }: IncomingMessage): boolean {
  return (headers['content-length'] ?? '0') !== '0' || 'transfer-encoding' in headers
}

/** Returns whether the body of a route is a form or the bytes of a file, which the route reads by itself. */
export function readsBody ({ schema }: Pick<RouteOptions, 'schema'>): boolean {
  const { consumes } = (schema ?? {}) as { consumes?: string[] }
  return consumes?.some((type) => type === 'multipart/form-data' || type === OFFSET_TYPE) ?? false
}

/**
 * Limits the time within which the body of a request must arrive (the option `bodySeconds`). Without a limit a client
 * decides how long it holds a connection, and how long ago its permission was checked. Fails the request with
 * `BodyStalled`, and Fastify adds `Connection: close`. Uploads have limits of their own. Rejects bodies with a
 * content coding.
 */
export default fp(async function bodyDeadline (app) {
  const milliseconds = app.usherOptions.bodySeconds * 1000

  // Most bodies arrive together with the head of the request, and are complete once the event loop has read the
  // available data. Only the others get a timer, which would cost more than anything else that is done for a small
  // request.
  let arriving: [IncomingMessage, Readable][] = []

  type Done = (error: Error | null, payload: Readable) => void
  function onPreParsing (request: FastifyRequest, _: FastifyReply, payload: Readable, done: Done): void {
    const { raw } = request
    if (!hasBody(raw)) return done(null, payload)
    if (arriving.push([raw, payload]) === 1) setImmediate(limitIncomplete)
    done(rejectionOfCoding(request, payload), payload)
  }

  function limitIncomplete (): void {
    const begun = arriving
    arriving = []
    for (const [request, payload] of begun) {
      if (!request.complete && !payload.readableEnded && !payload.destroyed) limit(payload, milliseconds)
    }
  }

  // Routes without a body get no hook, because every hook costs throughput.
  const onRoute: onRouteHookHandler = (route) => {
    const bodiless = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD')
    if (!bodiless && !readsBody(route)) route.preParsing = [...[route.preParsing ?? []].flat(), onPreParsing]
  }
  app.addHook('onRoute', onRoute)
}, { name: 'usher-body-deadline', dependencies: ['usher-options'] })

function limit (payload: Readable, milliseconds: number): void {
  let last: NodeJS.Immediate | undefined
  // The node may have been busy. What has arrived meanwhile is read before the deadline counts.
  const timer = setTimeout(() => { last = setImmediate(fail) }, milliseconds)
  // With `app.inject`, no event shows that a body is not read, and the timer would keep the process alive.
  timer.unref()
  const clear = () => {
    clearTimeout(timer)
    clearImmediate(last)
  }
  for (const event of ['end', 'close', 'error']) payload.once(event, clear)

  function fail (): void {
    // Fastify listens to this event and sends the error. `destroy` would close the connection before the response is
    // sent.
    payload.emit('error', new BodyStalled())
  }
}

import { finished } from 'node:stream'
import {
  context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags, type Context, type Span,
} from '@opentelemetry/api'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Tracing } from '../../db/telemetry/tracing.ts'
import { onceClosed } from '../http/raw/connections.ts'
import { methodOf } from '../../schema/http/method.ts'
import { setTraceId } from './trace-ids.ts'

/**
 * Gives every request a span of the kind server, in the trace that its `traceparent` names. If the process instruments
 * `node:http`, the request has such a span already, and gets no second one: it only learns the pattern of the route. An
 * upgrade to a WebSocket has no span, because it would last as long as the socket.
 */
export default fp<{ tracing: Tracing }>(async function requestSpans (app, { tracing: { tracer } }) {
  const contexts = new WeakMap<FastifyRequest, Context>()

  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.upgrade !== undefined) return done()
    const existing = trace.getActiveSpan()
    if (existing && isInUse(existing)) {
      nameRequest(existing, request)
      setTraceId(request.raw, existing.spanContext().traceId)
      return done()
    }
    const parent = propagation.extract(ROOT_CONTEXT, request.headers)
    const span = tracer.startSpan(nameOf(request), { kind: SpanKind.SERVER, attributes: attributesOf(request) }, parent)
    const active = trace.setSpan(parent, span)
    contexts.set(request, active)
    setTraceId(request.raw, span.spanContext().traceId)
    finished(reply.raw, (error) => end(span, reply, error != null))
    // A response that waits for others is not always told that its connection is closed.
    onceClosed(reply, () => end(span, reply, true))
    context.with(active, done)
  })

  // The events of a body's stream are emitted in the context of the connection.
  app.addHook('preValidation', (request, _, done) => {
    const active = contexts.get(request)
    if (active) context.with(active, done)
    else done()
  })
}, { name: 'usher-request-spans' })

// A span that is sampled and not recording has ended, such as one around the start of the app, whose context
// connections inherit.
function isInUse (span: Span): boolean {
  return span.isRecording() || (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0
}

// The span may be one of the host's own, for example of an app that injects the request. Only the kind server is the
// request's.
function nameRequest (span: Span & { kind?: SpanKind }, request: FastifyRequest): void {
  const { url } = request.routeOptions
  if (span.kind === SpanKind.SERVER && url !== undefined) {
    span.setAttribute('http.route', url).updateName(nameOf(request))
  }
}

function nameOf ({ method, routeOptions: { url } }: FastifyRequest): string {
  return url === undefined ? methodOf(method) : `${methodOf(method)} ${url}`
}

// The query and the address are left out, because they may contain secrets and personal data.
function attributesOf ({ method, url, protocol, routeOptions }: FastifyRequest) {
  return {
    'http.request.method': methodOf(method),
    // What follows an encoded `#` may be the token of a link, see `routes/pages/account/index.ts`.
    'url.path': url.split(/\?|%(?:25)?23/, 1)[0]!,
    'url.scheme': protocol,
    ...routeOptions.url !== undefined && { 'http.route': routeOptions.url },
  }
}

function end (span: Span, { statusCode }: FastifyReply, isCutOff: boolean): void {
  if (!span.isRecording()) return
  span.setAttribute('http.response.status_code', statusCode)
  if (isCutOff) {
    span.setAttribute('error.type', 'CLIENT_DISCONNECTED')
  } else if (statusCode >= 500) {
    span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', String(statusCode))
  }
  span.end()
}

import type { IncomingMessage } from 'node:http'

const known = new WeakMap<IncomingMessage, string>()

/** Remembers the trace of a request, for as long as the request exists. */
export function setTraceId (request: IncomingMessage, traceId: string): void {
  known.set(request, traceId)
}

/**
 * Returns the trace of a request: that of its span, or the one that `traceparent` names (W3C Trace Context), or
 * undefined.
 */
export function traceIdOf (request: IncomingMessage): string | undefined {
  const [, named] =
    /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/.exec(String(request.headers['traceparent'] ?? '')) ?? []
  return known.get(request) ?? named
}

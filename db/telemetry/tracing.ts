import {
  context, createContextKey, isSpanContextValid, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags,
  type Attributes, type Span, type Tracer,
} from '@opentelemetry/api'

const NAME = 'fastify-usher'
const BATCH = createContextKey('usher batch')
// A statement of Usher has a few kilobytes at most. One of a host's hook may have more.
const TEXT_LENGTH = 8192

/** A batch whose statement runs. */
export interface Batch {
  /** The name and the number of the items that a statement processes. */
  readonly name: string | undefined
  readonly size: number
  /** The spans of the requests that the items come from. */
  readonly spans: readonly Span[]
}

export type Tracing = ReturnType<typeof createTracing>

/**
 * Returns the tracing of a mount, or undefined if no OpenTelemetry SDK is registered yet. Without one, nothing of this
 * is used afterwards: the hot path only compares with undefined.
 */
export function findTracing (): Tracing | undefined {
  const tracer = trace.getTracer(NAME)
  // Spans of the API without an SDK have no id. This one is not ended, so no SDK exports it.
  return isSpanContextValid(tracer.startSpan('probe', { root: true }).spanContext()) ? createTracing(tracer) : undefined
}

function createTracing (tracer: Tracer) {
  return {
    tracer,

    /** Returns the spans of the requests that the running code works for: usually one, and several within a batch. */
    activeSpans (): readonly Span[] {
      const active = context.active()
      const span = trace.getSpan(active)
      return (active.getValue(BATCH) as Batch | undefined)?.spans ?? (span ? [span] : [])
    },

    /**
     * Runs a batch for the requests with these spans. Its statements are children of the first request that is sampled,
     * and link to every request. Without a request, its statements have no spans.
     */
    runBatch<Result> ({ spans, ...batch }: Batch, run: () => Promise<Result>): Promise<Result> {
      const all = [...new Set(spans)]
      const parent = all.find(isSampled) ?? all[0]
      // The batch was started by any of its requests, or by one of an earlier batch, whose context would otherwise
      // remain.
      return context.with(
        parent ? trace.setSpan(ROOT_CONTEXT, parent).setValue(BATCH, { ...batch, spans: all }) : ROOT_CONTEXT, run
      )
    },

    /**
     * Runs a statement in a span. Statements that no request waits for, such as regular clean-ups, have none.
     * @param standby the address of the standby that it is sent to, if it is not sent to the primary
     */
    async runStatement<Result> (text: string, run: () => Promise<Result>, standby?: string): Promise<Result> {
      const active = context.active()
      const parent = trace.getSpan(active)
      if (!parent) return run()
      const batch = active.getValue(BATCH) as Batch | undefined
      const operation = /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase() ?? 'statement'
      const span = tracer.startSpan(batch?.name ? `${operation} ${batch.name}` : operation, {
        kind: SpanKind.CLIENT,
        attributes: {
          'db.system.name': 'postgresql',
          'db.operation.name': operation,
          // The text has placeholders and no values.
          'db.query.text': text.slice(0, TEXT_LENGTH),
          ...batch && batch.size > 1 && { 'db.operation.batch.size': batch.size },
          ...standby !== undefined && addressOf(standby),
        },
        ...batch && { links: batch.spans.map((request) => ({ context: request.spanContext() })) },
      }, active)
      // The trace of a request shows the statements below it, and the link leads from the others to the one they have
      // shared.
      for (const request of batch?.spans ?? []) {
        if (request !== parent && request.isRecording()) request.addLink?.({ context: span.spanContext() })
      }
      try {
        return await run()
      } catch (error) {
        const { code } = error as { code?: string }
        span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', code ?? 'Error')
        throw error
      } finally {
        span.end()
      }
    },

    /**
     * Runs what outlives the request that has started it, such as a subscription. Its statements belong to no request.
     */
    detached: <Result>(run: () => Result): Result => context.with(ROOT_CONTEXT, run),
  }
}

// The port follows the last colon, also behind an address of IPv6.
function addressOf (server: string): Attributes {
  const end = server.lastIndexOf(':')
  return { 'server.address': server.slice(0, end), 'server.port': Number(server.slice(end + 1)) }
}

const isSampled = (span: Span): boolean => (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0

import fp from 'fastify-plugin'
import { DatabaseUnavailable, Overloaded } from '../../schema/http/errors.ts'
import type { Counter } from '../../db/telemetry/metrics.ts'
import { createTelemetry, type Telemetry } from '../../db/telemetry/telemetry.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherTelemetry: Telemetry & {
      /**
       * Counts the requests that are rejected because the node or the database cannot serve them, by the code of the
       * error.
       */
      readonly rejections: Counter
    }
  }
}

/** Provides the metrics and the tracing (contract 14.2), to which every other plugin adds what it measures. */
export default fp(async function telemetry (app) {
  const telemetry = createTelemetry()
  const rejections = telemetry.metrics.counter(
    'usher_rejected_requests_total', 'Requests that were rejected with 503, or with its code in GraphQL',
    { label: 'code', values: [new DatabaseUnavailable().code, new Overloaded().code] }
  )
  app.decorate('usherTelemetry', { ...telemetry, rejections })
  const { tracing } = telemetry
  if (tracing) await app.register(importSpans(), { tracing })
}, { name: 'usher-telemetry' })

// Not in the default export: there the compiler does not change the extension of a dynamic import.
function importSpans () {
  return import('./request-spans.ts')
}

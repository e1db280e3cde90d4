import { context, propagation, SpanKind, SpanStatusCode, trace, type Context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, type ReadableSpan,
} from '@opentelemetry/sdk-trace-base'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { until } from '../helpers/until.ts'

const exporter = new InMemorySpanExporter()
const isNamed = (name: string) => (span: ReadableSpan) => span.name === name

const early = await createUsher(t)
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
propagation.setGlobalPropagator(new W3CTraceContextPropagator())
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
const usher = await createUsher(t)
t.beforeEach(() => exporter.reset())

/** Resolves with the finished spans when so many of them have a name. */
async function spansOf (name: string, count = 1): Promise<ReadableSpan[]> {
  await until(`${count} spans ${name}`, () => exporter.getFinishedSpans().filter(isNamed(name)).length >= count)
  return exporter.getFinishedSpans()
}

t.test('14.2 a request and its statement have spans in the trace of traceparent', async (t) => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  await usher.inject(
    'GET',
    `/api/users/${usher.admin.id}?secret=sesame`,
    { headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } }
  )
  const spans = await spansOf('GET /api/users/:id')
  const request = spans.find(isNamed('GET /api/users/:id'))!
  const statement = spans.find(({ kind }) => kind === SpanKind.CLIENT)!
  t.equal(request.kind, SpanKind.SERVER)
  t.equal(request.spanContext().traceId, traceId)
  t.equal(request.parentSpanContext!.spanId, 'b7ad6b7169203331')
  t.same(request.attributes, {
    'http.request.method': 'GET',
    'http.route': '/api/users/:id',
    'url.path': `/api/users/${usher.admin.id}`,
    'url.scheme': 'http',
    'http.response.status_code': 200,
  })
  t.equal(statement.name, 'select users.read')
  t.equal(statement.parentSpanContext!.spanId, request.spanContext().spanId)
  t.match(statement.attributes['db.query.text'], /\$1/)
  t.notMatch(JSON.stringify(spans.map(({ name, attributes }) => ({ name, attributes }))), 'sesame')
  t.notMatch(statement.attributes['db.query.text'], usher.admin.id)
})

t.test('14.2 the span of a link whose # was encoded does not contain its token', async (t) => {
  await usher.inject('GET', '/undo%23token=sesame')
  const [span] = await spansOf('GET /undo:link(^(?:#|%23).*)')
  t.equal(span!.attributes['url.path'], '/undo')
})

t.test('14.2 the statement of a batch links to every request that it served, and they link to it', async (t) => {
  const others = await Promise.all(Array.from({ length: 5 }, () => usher.createUser()))
  exporter.reset()
  await Promise.all(others.map(({ id }) => usher.inject('GET', `/api/users/${id}`)))
  const spans = await spansOf('GET /api/users/:id', 5)
  const requests = spans.filter(isNamed('GET /api/users/:id'))
  const statements = spans.filter(isNamed('select users.read'))
  const linked = statements.flatMap(({ links }) => links.map(({ context }) => context.spanId))
  t.same([...linked].sort(), requests.map((request) => request.spanContext().spanId).sort())
  const shared = statements.find(({ links }) => links.length > 1)!
  t.equal(shared.attributes['db.operation.batch.size'], shared.links.length)
  for (const request of requests) {
    const { spanId } = request.spanContext()
    if (!shared.links.some(({ context }) => context.spanId === spanId) || shared.parentSpanContext!.spanId === spanId) {
      continue
    }
    t.equal(request.links[0]!.context.spanId, shared.spanContext().spanId)
  }
})

t.test('14.2 the context survives the body of a request, and writes have spans, too', async (t) => {
  const url = await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const response = await fetch(`${url}/api/users`, {
    method: 'POST',
    headers: { ...usher.admin.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Ada', email: 'ada@example.com' }),
  })
  t.equal(response.status, 201)
  const spans = await spansOf('POST /api/users')
  const request = spans.find(isNamed('POST /api/users'))!
  const written = spans.filter(({ name, parentSpanContext }) =>
    / users\.create$/.test(name) && parentSpanContext!.spanId === request.spanContext().spanId)
  t.ok(written.length >= 1)
  const query = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ users { nodes { id } } }' }),
  })
  t.equal(query.status, 200)
  const all = await spansOf('POST /graphql')
  const graphql = all.find(isNamed('POST /graphql'))!
  t.ok(all.some(({ name, links }) =>
    name.endsWith(' users.list') && links[0]!.context.spanId === graphql.spanContext().spanId))
})

t.test('14.2 a request whose connection is instrumented gets no second server span', async (t) => {
  const tracer = trace.getTracer('test')
  const span = tracer.startSpan('GET', { kind: SpanKind.SERVER })
  await context.with(
    trace.setSpan(context.active() as Context, span), async () => { await usher.inject('GET', '/api/users') }
  )
  span.end()
  const spans = await spansOf('GET /api/users')
  t.equal(spans.filter(({ kind }) => kind === SpanKind.SERVER).length, 1)
  t.equal(spans.find(({ kind }) => kind === SpanKind.SERVER)!.attributes['http.route'], '/api/users')
  t.ok(spans.some(({ kind, parentSpanContext }) =>
    kind === SpanKind.CLIENT && parentSpanContext!.spanId === span.spanContext().spanId))
})

t.test('14.2 an error of the client is no error of the span', async (t) => {
  const { headers } = usher.admin
  const payload = { name: 'Grace', email: 'grace@example.com' }
  await usher.inject('POST', '/api/users', { headers, payload })
  exporter.reset()
  t.equal((await usher.inject('POST', '/api/users', { headers, payload })).statusCode, 409)
  const [request] = (await spansOf('POST /api/users')).filter(isNamed('POST /api/users'))
  t.equal(request!.attributes['http.response.status_code'], 409)
  t.equal(request!.status.code, SpanStatusCode.UNSET, 'an error of the client')
})

t.test('14.2 without an SDK at the start there are no spans', async (t) => {
  await early.inject('GET', '/api/users')
  t.same(exporter.getFinishedSpans(), [])
})

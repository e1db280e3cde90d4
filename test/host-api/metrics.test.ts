import t from 'tap'
import type { UsherMetric } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { Histogram } from '../../db/telemetry/histogram.ts'
import { until } from '../helpers/until.ts'
import { createMetrics } from '../../db/telemetry/metrics.ts'

/** Returns the value of a number, or the count of a histogram, whose labels have these values. */
function valueOf (metrics: readonly UsherMetric[], name: string, ...labels: string[]): number | undefined {
  const metric = metrics.find((metric) => metric.name === name)
  if (!metric) throw new Error(`there is no metric ${name}`)
  for (const sample of metric.samples) {
    if (labels.join() === Object.values(sample.labels).join()) return 'value' in sample ? sample.value : sample.count
  }
}

t.test('14.2 a host reads what Usher measures', async (t) => {
  const usher = await createUsher(t)
  const { app, admin, inject } = usher
  const before = await app.usher.metrics()
  await Promise.all(Array.from({ length: 30 }, () => inject('GET', `/api/users/${admin.id}`)))
  const body = Buffer.from([
    '--x', 'content-disposition: form-data; name="description"', '', 'some', '--x',
    'content-disposition: form-data; name="file"; filename="a"', '', 'bytes', '--x--', '',
  ].join('\r\n'))
  const uploaded = await inject('POST', '/api/uploads', {
    headers: { ...admin.headers, 'content-type': 'multipart/form-data; boundary=x' }, payload: body,
  })
  t.equal(uploaded.statusCode, 200)
  const user = await usher.createUser()
  await inject('POST', '/api/auth/logout', { headers: user.headers })
  await inject('POST', '/graphql', { payload: { query: '{ user(id: "none") { id } }' } })

  // The totals of the tables are read again after a second at the earliest.
  await until('the totals are read again', async () => valueOf(await app.usher.metrics(), 'usher_stored_bytes') === 5)
  const metrics = await app.usher.metrics()
  t.equal(valueOf(metrics, 'usher_stored_files'), 1)
  const grew = (name: string, ...labels: string[]) =>
    valueOf(metrics, name, ...labels)! - (valueOf(before, name, ...labels) ?? 0)
  t.ok(grew('usher_batch_items', 'users.read') >= 1)
  t.ok(grew('usher_database_statement_seconds') > 5)
  t.equal(grew('usher_revocations_total'), 1)
  t.equal(grew('usher_password_hashes_total'), 2)
  t.equal(grew('usher_graphql_errors_total', 'USER_NOT_FOUND'), 1)
  t.equal(valueOf(metrics, 'usher_database_available'), 1)
  t.equal(valueOf(metrics, 'usher_subscribers', 'sse'), 0)
  for (const { name, help, type } of metrics) {
    t.match(name, type === 'counter' ? /^usher_[a-z_]+_total$/ : /^usher_[a-z_]+(?<!_total)$/)
    t.ok(help)
  }
})

t.test('14.2 a histogram counts each value in its bucket and in those above', async (t) => {
  const histogram = new Histogram([1, 10])
  for (const value of [0, 1, 2, 10, 11]) histogram.observe(value)
  t.same(
    histogram.read({}), { labels: {}, buckets: [{ bound: 1, count: 2 }, { bound: 10, count: 4 }], count: 5, sum: 24 }
  )
})

t.test('14.2 a label has a bounded number of values', async (t) => {
  const metrics = createMetrics()
  const counter = metrics.counter('usher_test_total', 'A test', { label: 'kind' })
  for (let kind = 0; kind < 1000; kind++) counter.add(1, `kind ${kind}`)
  const [metric] = await metrics.read()
  t.equal(metric!.samples.length, 101)
  t.same(metric!.samples.at(-1), { labels: { kind: 'other' }, value: 900 })
})

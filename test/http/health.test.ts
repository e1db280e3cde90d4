import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createProxy } from '../helpers/proxy.ts'
import { until } from '../helpers/until.ts'

t.test('8 GET /health/live always succeeds, GET /health/ready only while the database is available', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const { inject } = await createUsher(t, { databaseUrl: proxy.url, deadlines: {}, prefix: '/accounts' })
  const get = async (path: string) => {
    const response = await inject('GET', path)
    return [response.statusCode, response.headers['content-type'], response.json()]
  }
  const type = 'application/json; charset=utf-8'
  // The node detects the outage after a moment, which other tests measure.
  const ready = (status: number) => until(`it is ${status}`, async () => (await get('/health/ready'))[0] === status, 20)

  t.same(await get('/health/live'), [200, type, { status: 'ok' }])
  t.same(await get('/health/ready'), [200, type, { status: 'ok' }])

  await proxy.refuse()
  await ready(503)
  t.same(
    await get('/health/ready'),
    [503, type, { error: 'The database is unavailable, try again', code: 'DATABASE_UNAVAILABLE' }]
  )
  t.equal((await inject('GET', '/health/ready')).headers['retry-after'], '1')
  t.same(await get('/health/live'), [200, type, { status: 'ok' }])

  await proxy.listen()
  await ready(200)
  t.same(await get('/health/ready'), [200, type, { status: 'ok' }])
})

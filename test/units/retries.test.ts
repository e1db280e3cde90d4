import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { createRetries } from '../../plugins/support/retries.ts'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { nightly } from '../helpers/nightly.ts'
import { until } from '../helpers/until.ts'

function openRetries (t: Test) {
  const lines: { msg: string }[] = []
  const app = Fastify({
    pluginTimeout: 0, logger: { level: 'error', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } },
  })
  const options = { ...readOptions({ databaseUrl: 'postgres://localhost/none' }), prefix: '', publicPath: '' }
  t.teardown(() => app.close())
  return { app, run: createRetries({ lifecycle: app, options }), lines }
}

t.test('1.10 a background task is repeated until the database is available again', async (t) => {
  const { run, lines } = openRetries(t)
  let attempts = 0
  run(async () => { if (++attempts === 1) throw new DatabaseUnavailable() })
  await until('the second attempt succeeds', () => attempts === 2)
  t.same(lines, [])
})

t.test('1.10 any other failure of a background task is logged at once', async (t) => {
  const { run, lines } = openRetries(t)
  run(async () => { throw new Error('a defect') })
  await until('the failure is logged', () => lines.length > 0)
  t.match(lines, [{ msg: 'A background task failed' }])
})

nightly('1.13 at most 10,000 background tasks wait for the database, and the log says how many are lost', async (t) => {
  const { app, run, lines } = openRetries(t)
  let attempts = 0
  for (let index = 0; index < 10_005; index++) {
    run(async () => {
      attempts++
      throw new DatabaseUnavailable()
    })
  }
  t.equal(attempts, 10_000)
  await until('the dropped ones are logged', () => lines.length === 1)
  t.equal(attempts, 20_000, 'all others are tried again')
  await app.close()
  t.match(lines, [{ lost: 5, waiting: 10_000 }, { lost: 10_000, waiting: 0 }])
})

t.test('8 the app closes when the background tasks that run have ended', async (t) => {
  const { app, run, lines } = openRetries(t)
  const gate = Promise.withResolvers<void>()
  let isDone = false
  run(async () => {
    await gate.promise
    isDone = true
  })
  const closed = app.close().then(() => isDone)
  // An app that did not wait would have closed by then.
  setTimeout(gate.resolve, 200)
  t.equal(await closed, true)
  t.same(lines, [])
})

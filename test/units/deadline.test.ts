import t from 'tap'
import { Deadline, ResolverTimeout } from '../../routes/graphql/host/context.ts'

t.test('9 what begins to wait after the deadline is rejected, without a warning of Node.js', async (t) => {
  const warnings: string[] = []
  const warn = ({ name }: Error) => void warnings.push(name)
  process.on('warning', warn)
  // The timer of a deadline keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => {
    process.off('warning', warn)
    clearInterval(alive)
  })
  await t.rejects(new Deadline(-10).wait(new Promise(() => {})), new ResolverTimeout())
  await new Promise(setImmediate)
  t.same(warnings, [])
})

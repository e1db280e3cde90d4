import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { createPacing } from '../../../plugins/users/large-pages.ts'

t.test('1.13 large pages follow each other at once on an idle node, and after a pause on a busy one', async (t) => {
  const load = { utilization: 0 }
  const pace = createPacing(load)
  let started = 0
  const start = () => pace().then(() => { started++ })
  await start()
  void start()
  await turn()
  t.equal(started, 2)
  load.utilization = 1
  const third = start()
  await turn()
  t.equal(started, 2)
  await third
  t.equal(started, 3)
})

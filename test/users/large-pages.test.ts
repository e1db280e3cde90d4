import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { createPacing } from '../../plugins/users/large-pages.ts'

t.test('1.13 large pages follow each other at once, unless the node is busy with other requests', async (t) => {
  const load = { utilization: 1 }
  let others = 0
  const pace = createPacing(() => others, { load, countFor: 0 })
  let started = 0
  const start = () => pace().then(() => { started++ })
  await start()
  void start()
  await turn()
  t.equal(started, 2, 'there are no others')
  others += 1e6
  load.utilization = 0
  void start()
  await turn()
  t.equal(started, 3, 'the node is idle')
  others += 1e6
  load.utilization = 1
  const waiting = [start(), start()]
  await turn()
  t.equal(started, 3)
  await waiting[0]
  t.equal(started, 4, 'one after the other')
  await waiting[1]
})

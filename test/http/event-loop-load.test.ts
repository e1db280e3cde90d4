import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { EventLoopLoad } from '../../plugins/telemetry/event-loop-load.ts'

t.test('1.13 an event loop without idle time counts as busy until it has some', async (t) => {
  const load = new EventLoopLoad()
  const until = async (isBusy: boolean, pause: () => Promise<unknown>) => {
    while (load.isBusy !== isBusy) await pause()
  }
  await until(true, () => new Promise(setImmediate))
  await until(false, () => delay(10))
  t.notOk(load.isBusy)
})

import t from 'tap'
import { waitForTimeSlice } from '../../plugins/streams/time-slice.ts'

t.test('7.8 events that are rendered from memory let other requests run in between', async (t) => {
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  // Each event takes two milliseconds, and waiting for it takes no I/O.
  for (let event = 0; event < 100; event++) {
    await waitForTimeSlice()
    for (const until = performance.now() + 2; performance.now() < until;);
  }
  isDone = true
  t.ok(turns >= 10, `${turns} turns of the event loop during 200 ms of work`)
})

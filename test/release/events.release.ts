import t from 'tap'
import { testEventFaults } from '../helpers/event-faults.ts'

t.test('12.5 twenty nodes and PostgreSQL four times are killed under load: a webhook gets every event, in order, and none that did not happen', async (t) => {
  await testEventFaults(t, { rounds: 20, killsDatabase: (round) => round % 5 === 4 })
})

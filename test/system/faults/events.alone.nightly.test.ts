import t from 'tap'
import { testEventFaults } from '../../helpers/event-faults.ts'

t.test('12.5 kill -9 of nodes and of PostgreSQL under load: a webhook gets every event, in order, and none that did not happen', async (t) => {
  await testEventFaults(t, { rounds: 2, killsDatabase: (round) => round === 1 })
})

import t from 'tap'
import { createClock } from '../../../db/driver/clock.ts'
import { newId, setClock } from '../../../db/driver/ids.ts'
import { openConnection } from '../../helpers/connection.ts'

const timeOf = (id: string) => parseInt(id.replaceAll('-', '').slice(0, 12), 16)
const log = { warn () {}, info () {}, error () {} }

t.test('2.1 ids of the same millisecond rise and do not run into the future, however many there are', async (t) => {
  const { db } = await openConnection(t)
  const [first, next] = [1_800_000_000_000, 1_800_000_000_001]
  let now = first
  setClock(db, { now: () => now, rising: () => now + 0.9, uncertainty: 0 })
  const ids = Array.from({ length: 50_000 }, () => newId(db))
  now = next
  ids.push(newId(db))
  t.strictSame([...new Set(ids)].toSorted(), ids)
  t.strictSame([...new Set(ids.map(timeOf))], [first, next])
  for (const id of ids.slice(0, 100)) t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/)
})

t.test('2.1 there is no id before the time of the database is known', async (t) => {
  const { db, clock, measureClock } = await openConnection(t)
  t.throws(() => newId(db), { message: 'The clock of the database is not known yet' })
  await measureClock()
  await db.transaction().execute(async (trx) => {
    t.ok(Math.abs(timeOf(newId(trx)) - clock.now()) < 60_000)
  })
})

t.test('2.1 if the clock of the database is set back, ids rise on all nodes alike until it has caught up', (t) => {
  const { now } = performance
  t.teardown(() => { performance.now = now })
  let at = 5000
  performance.now = () => at
  const [one, other] = [createClock(log), createClock(log)]
  for (const clock of [one, other]) clock.adjust(1_000_000, at, at)
  at += 1000
  t.strictSame([one.rising(), one.now()], [1_001_000, 1_001_000])
  const step = () => 991_000 + at - 6000
  one.adjust(step(), at, at)
  t.strictSame([one.rising(), one.now()], [1_001_000, 991_000], 'ten seconds behind')
  at += 200
  other.adjust(step(), at, at)
  const differences = []
  for (const passed of [0, 4000, 8000, 8000, 1000]) {
    at += passed
    for (const clock of [one, other]) clock.adjust(step(), at, at)
    differences.push([one.rising() - step(), other.rising() - step()])
  }
  t.strictSame(differences, [[9900, 10_000], [7900, 8000], [3900, 4000], [0, 0], [0, 0]])
  t.equal(one.now(), step())
  one.adjust(step() + 5000, at, at)
  t.equal(one.rising(), step() + 5000, 'a clock that is set forward is followed at once')
  t.end()
})

t.test('2.1 an answer that took long does not move ids by more than half of that', (t) => {
  const { now } = performance
  t.teardown(() => { performance.now = now })
  let at = 5000
  performance.now = () => at
  const clock = createClock(log)
  clock.adjust(1_000_100, at, at += 200)
  t.equal(clock.rising(), 1_000_200)
  clock.adjust(1_000_100 + 210, at, at += 400)
  t.equal(clock.rising(), 1_000_600, 'it says nothing new')
  clock.adjust(1_000_570, at, at += 10)
  t.ok(clock.rising() >= 1_000_600, 'the better answer corrects the first')
  t.equal(clock.now(), 1_000_575)
  t.end()
})

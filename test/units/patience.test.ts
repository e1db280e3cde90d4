import t from 'tap'
import { Patience } from '../../db/replicas/patience.ts'

const limits = { replicaReplay: 20, replicaReplayMax: 200 }

t.test('14.7 the limit of a standby follows what it achieves, between its bounds', async (t) => {
  const patience = new Patience(limits)
  t.equal(patience.ms, 20)
  for (let times = 0; times < 30; times++) patience.note(60)
  t.ok(patience.ms >= 60 && patience.ms < 80, `it takes 60 ms and has ${patience.ms}`)
  for (let times = 0; times < 30; times++) patience.note(1)
  t.equal(patience.ms, 20, 'one that is quick is not waited for')
  for (let times = 0; times < 30; times++) patience.note(1000)
  t.equal(patience.ms, 200)
})

t.test('14.7 reads that are late at the same time count once, until the limit is the longest', async (t) => {
  const patience = new Patience(limits)
  for (let times = 0; times < 8; times++) patience.noteLate(20)
  t.equal(patience.late, 1)
  t.ok(patience.ms > 40)
  while (patience.ms < 200) patience.noteLate(patience.ms)
  t.ok(patience.late <= 4)
  const { late } = patience
  for (let times = 0; times < 3; times++) patience.noteLate(200)
  t.equal(patience.late, late + 3)
  patience.note(100)
  t.equal(patience.late, 0)
})

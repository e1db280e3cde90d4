import t from 'tap'
import { compareEvents, isExact } from '../release/faults/check-events.ts'
import { checkRegisters } from '../release/faults/check-registers.ts'
import { checkSessions } from '../release/faults/check-sessions.ts'
import type { RegisterOperation, TokenUse } from '../release/faults/history.ts'
import { createSchedule } from '../release/faults/schedule.ts'

// The release test passes if the checks find nothing. These tests make sure that the checks do find violations.
const operation = (
  kind: 'read' | 'write', value: string, start: number, end: number, status = 200
): RegisterOperation =>
  ({ kind, value, start, end, status, register: 'user', node: 0 })
const rulesOf = (...operations: RegisterOperation[]) => checkRegisters(operations).map(({ rule }) => rule)
const first = operation('write', 'a', 0, 1)

t.test('a register may change at any moment of a write, and a failed write may have taken effect', async (t) => {
  t.strictSame(
    rulesOf(first, operation('write', 'b', 2, 8), operation('read', 'b', 3, 4), operation('read', 'b', 5, 9)), []
  )
  t.strictSame(
    rulesOf(first, operation('write', 'b', 2, 8), operation('read', 'a', 3, 4), operation('read', 'b', 5, 6)), []
  )
  t.strictSame(rulesOf(first, operation('write', 'b', 2, 3, 503), operation('read', 'a', 4, 5)), [])
  t.strictSame(rulesOf(first, operation('write', 'b', 2, 3, 503), operation('read', 'b', 4, 5)), [])
  t.strictSame(
    rulesOf(first, operation('write', 'b', 2, 3, 0), operation('write', 'c', 4, 5), operation('read', 'b', 6, 7)),
    [],
    'nobody was told that it failed'
  )
})

t.test('stale, lost, invented and reverted values are found', async (t) => {
  const back = 'a value was written and never current, or an older one came back'
  t.strictSame(rulesOf(first, operation('write', 'b', 2, 3), operation('read', 'a', 4, 5)), [back], 'stale')
  t.strictSame(
    rulesOf(first, operation('write', 'b', 2, 9), operation('read', 'b', 3, 4), operation('read', 'a', 5, 6)),
    [back],
    'read by one, and not by the next'
  )
  t.strictSame(rulesOf(first, operation('read', 'x', 4, 5)), ['a value was read that nobody wrote'])
  t.strictSame(
    rulesOf(first, operation('read', 'b', 2, 3), operation('write', 'b', 4, 5)),
    ['a value was read before it was written']
  )
  const undone = rulesOf(
    first, operation('write', 'b', 2, 3, 503), operation('write', 'c', 4, 5), operation('read', 'c', 6, 7),
    operation('read', 'b', 8, 9)
  )
  t.strictSame(undone, ['two values were current at the same time'], 'a write that was refused overwrites a later one')
})

t.test('tokens that are accepted too late or rejected too early are found', async (t) => {
  const use = (start: number, status: number): TokenUse => ({ kind: 'read', node: 0, start, end: start + 1, status })
  const check = (uses: TokenUse[], titles: string[] = [], status = 204) =>
    checkSessions(
      [{ id: 'session', cookie: '', ending: { node: 0, start: 100, end: 110, status }, uses }], new Set(titles)
    )
  t.match(check([use(50, 200), use(105, 200), use(200, 200), use(260, 401)]), {
    violations: [], accepted: [{ milliseconds: 90 }], falseRejections: 0,
  })
  t.match(
    check([use(50, 401)]), { violations: [{ rule: 'the token of a live session was rejected' }], falseRejections: 1 }
  )
  t.match(check([use(211, 200)]).violations, [{ rule: 'the token of an ended session was accepted' }])
  t.match(
    check([use(120, 401), use(300, 200)], [], 503).violations, [{ rule: 'a session that had ended was there again' }]
  )
  const late: TokenUse = { kind: 'socket', node: 0, start: 300, end: 300, status: 0, title: 'late' }
  t.strictSame(check([late]).violations, [])
  t.match(check([late], ['late']).violations, [{ rule: 'the token of an ended session was accepted' }])
})

t.test('events that are missing, duplicate, out of order or invented are found', async (t) => {
  t.ok(isExact(compareEvents(['a', 'b', 'c'], ['a', 'b', 'c'])))
  for (const seen of [['a', 'c'], ['a', 'b', 'b', 'c'], ['b', 'a', 'c'], ['a', 'b', 'x', 'c']]) {
    t.notOk(isExact(compareEvents(seen, ['a', 'b', 'c'])))
  }
})

t.test('a seed always yields the same schedule, and different seeds yield different ones', async (t) => {
  t.strictSame(createSchedule(7, 120_000, 3), createSchedule(7, 120_000, 3))
  t.not(JSON.stringify(createSchedule(7, 120_000, 3)), JSON.stringify(createSchedule(8, 120_000, 3)))
})

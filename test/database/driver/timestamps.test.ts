import t from 'tap'
import { parseTimestamp } from '../../../db/driver/timestamps.ts'

const cases: Record<string, string> = {
  '2026-11-20 22:41:54+00': '2026-11-20T22:41:54.000Z',
  '2026-11-20 22:41:54.7+00': '2026-11-20T22:41:54.700Z',
  '2026-11-20 22:41:54.07+00': '2026-11-20T22:41:54.070Z',
  '2026-11-20 22:41:54.771+00': '2026-11-20T22:41:54.771Z',
  '2026-11-20 22:41:54.771999+00': '2026-11-20T22:41:54.771Z',
  '2024-02-29 23:59:59.999+00': '2024-02-29T23:59:59.999Z',
  '2000-02-29 00:00:00+00': '2000-02-29T00:00:00.000Z',
  '1900-03-01 00:00:00+00': '1900-03-01T00:00:00.000Z',
  '1969-12-31 23:59:59.5+00': '1969-12-31T23:59:59.500Z',
  '0044-03-15 12:00:00+00': '0044-03-15T12:00:00.000Z',
  '9999-12-31 23:59:59.999999+00': '9999-12-31T23:59:59.999Z',
  // Forms that `new Date` reads.
  '2026-11-20 22:41:54.771+02': '2026-11-20T20:41:54.771Z',
  '2026-11-20 22:41:54-03:30': '2026-11-21T02:11:54.000Z',
  '2026-11-20': '2026-11-20T00:00:00.000Z',
}

t.test('a time that PostgreSQL writes is read to the millisecond', async (t) => {
  for (const [text, expected] of Object.entries(cases)) t.equal(parseTimestamp(text).toISOString(), expected, text)
  t.ok(Number.isNaN(parseTimestamp('infinity').getTime()))
})

t.test('every day of four hundred years is read', async (t) => {
  const written = (day: Date) => day.toISOString().replace('T', ' ').replace('.000Z', '+00')
  const wrong: string[] = []
  for (let at = Date.UTC(1800, 0, 1); at < Date.UTC(2200, 0, 2); at += 86_400_000) {
    const text = written(new Date(at))
    if (parseTimestamp(text).getTime() !== at) wrong.push(text)
  }
  t.strictSame(wrong, [])
})

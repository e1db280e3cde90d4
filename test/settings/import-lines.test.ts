import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readLines, type Line } from '../../node/imports/lines.ts'
import { RejectedLine } from '../../node/imports/parse-line.ts'
import { createUserParser } from '../../node/imports/parse-user.ts'
import { IMPORT_LIMITS } from '../../schema/sign-in/passwords/stored-hash.ts'
import { noFields } from '../../schema/users/user-fields.ts'
import { hashers } from '../helpers/password-hashes.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

async function collect (lines: AsyncIterable<Line>): Promise<Line[]> {
  const collected: Line[] = []
  for await (const line of lines) collected.push(line)
  return collected
}

t.test('16.7 lines of every size are read, at every break of the stream, in constant memory', async (t) => {
  const path = join(temporaryFolder(), 'lines')
  const texts = ['', 'a', '\r', 'b\r', 'x'.repeat(100), 'x'.repeat(101), 'ü'.repeat(300_000), '', 'end']
  writeFileSync(path, texts.join('\n'))
  const lines = await collect(readLines(path, { position: 0, line: 0 }, 100))
  t.strictSame(lines.map(({ bytes }) => bytes?.toString()), ['', 'a', '', 'b', 'x'.repeat(100), undefined, undefined, '', 'end'])
  for (const { number, end } of lines) {
    const rest = await collect(readLines(path, { position: end, line: number }, 100))
    t.strictSame(rest, lines.slice(number), `from line ${number}`)
  }
  truncateSync(path)
  t.strictSame(await collect(readLines(path, { position: 0, line: 0 })), [])
})

t.test('16.7 whatever is in a line, it is a user or rejected with a sentence', async (t) => {
  const parse = createUserParser({ fields: noFields, limits: IMPORT_LIMITS, now: Date.now() })
  const sample = JSON.stringify({
    name: 'ada',
    email: 'ada@example.com',
    id: '5f0a2b6c-1111-4222-8333-444455556666',
    createdAt: '2020-01-01T00:00:00Z',
    role: 'user',
    disabled: false,
    emailVerified: true,
    passwordHash: await hashers.scrypt('x'),
  })
  let state = 7
  const random = (below: number) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0
    return (state >>> 0) % below
  }
  const parts = ['"', ':', ',', '{', '}', '[', 'null', 'true', '1e999', '-0', '\\u0000', '\\ud800', '\0', '\x80', '__proto__', ' ', '\\"']
  const counts = { users: 0, rejected: 0, blank: 0 }
  for (let round = 0; round < 5000; round++) {
    let text = sample
    for (let change = 0; change <= random(3); change++) {
      const at = random(text.length + 1)
      text = text.slice(0, at) + (random(2) ? parts[random(parts.length)]! : '') + text.slice(at + random(5))
    }
    try {
      counts[parse(Buffer.from(text, random(2) ? 'utf8' : 'latin1')) ? 'users' : 'blank']++
    } catch (error) {
      if (!(error instanceof RejectedLine) || error.message === '') t.fail(`${JSON.stringify(text)}: ${error}`)
      counts.rejected++
    }
  }
  t.ok(counts.users > 100 && counts.rejected > 1000, JSON.stringify(counts))
})

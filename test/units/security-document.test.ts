import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string) => readFileSync(join(root, file), 'utf8')

const statuses = ['met', 'partly', 'not met', 'host', 'n/a'] as const

// The requirements of OWASP ASVS 5.0.0: the numbers of levels 1 and 2 in each section.
const sections: [section: string, level1: number[], level2: number[]][] = [
  ['V1.1', [], [1, 2]],
  ['V1.2', [1, 2, 3, 4, 5], [6, 7, 8, 9]],
  ['V1.3', [1, 2], [3, 4, 5, 6, 7, 8, 9, 10, 11]],
  ['V1.4', [], [1, 2, 3]],
  ['V1.5', [1], [2]],
  ['V2.1', [1], [2, 3]],
  ['V2.2', [1, 2], [3]],
  ['V2.3', [1], [2, 3, 4]],
  ['V2.4', [], [1]],
  ['V3.2', [1, 2], []],
  ['V3.3', [1], [2, 3, 4]],
  ['V3.4', [1, 2], [3, 4, 5, 6]],
  ['V3.5', [1, 2, 3], [4, 5]],
  ['V3.7', [], [1, 2]],
  ['V4.1', [1], [2, 3]],
  ['V4.2', [], [1]],
  ['V4.3', [], [1, 2]],
  ['V4.4', [1], [2, 3, 4]],
  ['V5.1', [], [1]],
  ['V5.2', [1, 2], [3]],
  ['V5.3', [1, 2], []],
  ['V5.4', [], [1, 2, 3]],
  ['V6.1', [1], [2, 3]],
  ['V6.2', [1, 2, 3, 4, 5, 6, 7, 8], [9, 10, 11, 12]],
  ['V6.3', [1, 2], [3, 4]],
  ['V6.4', [1, 2], [3, 4]],
  ['V6.5', [], [1, 2, 3, 4, 5]],
  ['V6.6', [], [1, 2, 3]],
  ['V6.8', [], [1, 2, 3, 4]],
  ['V7.1', [], [1, 2, 3]],
  ['V7.2', [1, 2, 3, 4], []],
  ['V7.3', [], [1, 2]],
  ['V7.4', [1, 2], [3, 4, 5]],
  ['V7.5', [], [1, 2]],
  ['V7.6', [], [1, 2]],
  ['V8.1', [1], [2]],
  ['V8.2', [1, 2], [3]],
  ['V8.3', [1], []],
  ['V8.4', [], [1]],
  ['V9.1', [1, 2, 3], []],
  ['V9.2', [1], [2, 3, 4]],
  ['V10.1', [], [1, 2]],
  ['V10.2', [], [1, 2]],
  ['V10.3', [], [1, 2, 3, 4]],
  ['V10.4', [1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]],
  ['V10.5', [], [1, 2, 3, 4, 5]],
  ['V10.6', [], [1, 2]],
  ['V10.7', [], [1, 2, 3]],
  ['V11.1', [], [1, 2]],
  ['V11.2', [], [1, 2, 3]],
  ['V11.3', [1, 2], [3]],
  ['V11.4', [1], [2, 3, 4]],
  ['V11.5', [], [1]],
  ['V11.6', [], [1]],
  ['V12.1', [1], [2, 3]],
  ['V12.2', [1, 2], []],
  ['V12.3', [], [1, 2, 3, 4]],
  ['V13.1', [], [1]],
  ['V13.2', [], [1, 2, 3, 4, 5]],
  ['V13.3', [], [1, 2]],
  ['V13.4', [1], [2, 3, 4, 5]],
  ['V14.1', [], [1, 2]],
  ['V14.2', [1], [2, 3, 4]],
  ['V14.3', [1], [2, 3]],
  ['V15.1', [1], [2, 3]],
  ['V15.2', [1], [2, 3]],
  ['V15.3', [1], [2, 3, 4, 5, 6, 7]],
  ['V16.1', [], [1]],
  ['V16.2', [], [1, 2, 3, 4, 5]],
  ['V16.3', [], [1, 2, 3, 4]],
  ['V16.4', [], [1, 2, 3]],
  ['V16.5', [], [1, 2, 3]],
  ['V17.1', [], [1]],
  ['V17.2', [], [1, 2, 3, 4]],
  ['V17.3', [], [1, 2]],
]

const expected = sections.flatMap(([section, level1, level2]) => [
  ...level1.map((number) => ({ id: `${section}.${number}`, level: '1' })),
  ...level2.map((number) => ({ id: `${section}.${number}`, level: '2' })),
])

/** Returns the cells of each table row in a document whose line matches a pattern. */
function rowsOf (file: string, pattern: RegExp): string[][] {
  const lines = read(file).split('\n').filter((line) => pattern.test(line))
  return lines.map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()))
}

const requirements = rowsOf('docs/asvs.md', /^\| V\d/)
  .map(([id, level, requirement, status, where]) => ({ id, level, requirement, status, where }))

const count = (status: string, level?: string) =>
  requirements.filter((row) => row.status === status && (level === undefined || row.level === level)).length

t.test('every requirement of ASVS levels 1 and 2 is listed once, in order, with its level', async (t) => {
  t.equal(expected.filter(({ level }) => level === '1').length, 70)
  t.equal(expected.filter(({ level }) => level === '2').length, 183)
  const inOrder = ({ id: one }: { id?: string | undefined }, { id: other }: { id?: string | undefined }) =>
    one!.localeCompare(other!, 'en', { numeric: true })
  t.same(requirements.map(({ id, level }) => ({ id, level })), [...expected].sort(inOrder))
})

t.test('every requirement has a paraphrase, a status, and a place in the code or a reason', async (t) => {
  t.same(requirements.filter(({ status }) => !(statuses as readonly unknown[]).includes(status)), [])
  t.same(requirements.filter(({ requirement, where }) => !requirement || !where), [])
})

t.test('the numbers in the summaries match the tables', async (t) => {
  const summary = statuses.map((status) => [count(status, '1'), count(status, '2'), count(status)].map(String))
  t.same(rowsOf('docs/asvs.md', /^\| `/).map((cells) => cells.slice(2)), summary)
  const [, listed = ''] = /^`not met`: ([^]+?)\n\n/m.exec(read('docs/asvs.md'))!
  t.same(listed.match(/V[\d.]+\d/g), requirements.filter(({ status }) => status === 'not met').map(({ id }) => id))
  const sentence =
    /Of (\d+) requirements, Usher meets (\d+), (\d+) partly, and (\d+) not;\s(\d+) .+ (\d+) do not apply\./.exec(
      read('docs/security.md')
    )!
  t.same(sentence.slice(1).map(Number), [requirements.length, ...statuses.map((status) => count(status))])
})

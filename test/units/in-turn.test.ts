import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { createInTurn } from '../../plugins/support/in-turn.ts'

function createTasks (options: Partial<Parameters<typeof createInTurn>[0]> = {}) {
  const inTurn = createInTurn({ timeoutMs: 60_000, ...options })
  const started: string[] = []
  const ends: (() => void)[] = []
  const run = (key: string, name: string) => inTurn.run(key, () => new Promise<string>((resolve, reject) => {
    started.push(name)
    ends.push(() => name === 'fails' ? reject(new Error(name)) : resolve(name))
  }))
  return { run, started, ends }
}

t.test('SPEED 3 tasks with the same key run one after the other, in order, and a failure affects no other', async (t) => {
  const { run, started, ends } = createTasks()
  const results = Promise.allSettled([run('a', 'first'), run('a', 'fails'), run('b', 'other'), run('a', 'third')])
  await turn()
  t.strictSame(started, ['first', 'other'])
  for (let index = 0; index < 4; index++) {
    ends[index]!()
    await turn()
  }
  t.strictSame(started, ['first', 'other', 'fails', 'third'])
  t.match(await results, [{ value: 'first' }, { reason: { message: 'fails' } }, { value: 'other' }, { value: 'third' }])
  void run('a', 'later')
  t.equal(started.at(-1), 'later', 'a task without a predecessor starts at once')
})

t.test('SPEED 3 a task that has waited for too long is rejected, and the next one does not overtake the first', async (t) => {
  const { run, started, ends } = createTasks({ timeoutMs: 1 })
  const first = run('a', 'first')
  await t.rejects(run('a', 'second'), { code: 'OVERLOADED' })
  const others = [run('a', 'third'), run('b', 'other')]
  t.strictSame(started, ['first', 'other'])
  await t.rejects(others[0]!, { code: 'OVERLOADED' })
  for (const end of ends) end()
  t.strictSame([await first, await others[1]], ['first', 'other'])
  await turn()
  void run('a', 'last')
  t.equal(started.at(-1), 'last')
})

t.test('1.13 the number of tasks that wait is limited, and does not limit those that need not wait', async (t) => {
  const { run, started, ends } = createTasks({ maxWaiting: 1 })
  const results = [run('a', 'first'), run('a', 'second')]
  await t.rejects(run('a', 'third'), { code: 'OVERLOADED' })
  void run('b', 'other')
  t.strictSame(started, ['first', 'other'])
  ends[0]!()
  await results[0]
  await turn()
  ends[2]!()
  t.equal(await results[1], 'second')
})

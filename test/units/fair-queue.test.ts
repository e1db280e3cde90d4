import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { FairQueue } from '../../plugins/support/fair-queue.ts'

function createTasks (options: Partial<ConstructorParameters<typeof FairQueue>[0]> = {}) {
  const queue = new FairQueue({ concurrency: 1, maxWaiting: 1000, ...options })
  const started: string[] = []
  const ends: (() => void)[] = []
  const run = (path: string) => queue.run(path.split(' '), () => new Promise<string>((resolve, reject) => {
    started.push(path)
    ends.push(() => path.endsWith('fails') ? reject(new Error(path)) : resolve(path))
  }))
  async function endAll (): Promise<void> {
    for (let index = 0; index < ends.length; index++) {
      ends[index]!()
      await turn()
    }
  }
  return { queue, run, started, ends, endAll }
}

t.test('1.13 tasks that wait take turns by their first names, and then by their second ones', async (t) => {
  const { queue, run, started, endAll } = createTasks()
  const paths = ['a x', 'a x', 'a x', 'a y', 'b z', 'a fails', 'b z', 'c w']
  const results = Promise.allSettled(paths.map(run))
  t.strictSame(started, ['a x'], 'one at a time')
  t.equal(queue.waiting, 7)
  await endAll()
  t.strictSame(started, ['a x', 'a x', 'b z', 'c w', 'a y', 'b z', 'a fails', 'a x'])
  t.strictSame(
    (await results).map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled']
  )
  t.equal(queue.waiting, 0)
  void run('d v')
  t.equal(started.at(-1), 'd v', 'a task starts at once when none runs')
})

t.test('1.13 as many tasks run at once as allowed', async (t) => {
  const { run, started, ends, endAll } = createTasks({ concurrency: 2 })
  const results = Promise.all(['a x', 'a x', 'a x', 'a x'].map(run))
  t.equal(started.length, 2)
  ends[1]!()
  await turn()
  t.equal(started.length, 3, 'a place that is free is taken')
  await endAll()
  await results
})

t.test('1.13 when too many wait, a task of the branch with most of them gives way', async (t) => {
  const { queue, run, started, endAll } = createTasks({ maxWaiting: 4 })
  const flood = Promise.allSettled(['a x', 'a x', 'a x', 'a y', 'a x'].map(run))
  t.equal(queue.waiting, 4)
  await t.rejects(run('a x'), { code: 'OVERLOADED' }, 'that of the flood itself')
  const others = ['b z', 'a w', 'b z'].map(run)
  t.equal(queue.waiting, 4)
  await t.rejects(run('b z'), { code: 'OVERLOADED' }, 'a branch that has as many as the largest')
  await endAll()
  t.strictSame(await Promise.all(others), ['b z', 'a w', 'b z'])
  const rejected = (await flood).map(({ status }) => status === 'rejected')
  t.strictSame(rejected, [false, true, true, false, true], 'the last ones of the largest branch within it')
  t.strictSame(started, ['a x', 'a y', 'b z', 'a w', 'b z'])
})

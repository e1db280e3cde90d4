import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { inTime, settlesWithin } from '../../schema/runtime/in-time.ts'

const isLate = () => new Error('late')

t.test('work that ends in time gives its result, or its error', async (t) => {
  t.equal(await inTime(Promise.resolve('done'), 60_000, isLate), 'done')
  await t.rejects(inTime(Promise.reject(new Error('broken')), 60_000, isLate), { message: 'broken' })
  t.equal(await inTime(Promise.resolve(undefined), 60_000, isLate), undefined)
})

t.test('work that takes too long gives the error for that, even if the error aborts it', async (t) => {
  const { promise, reject } = Promise.withResolvers<string>()
  await t.rejects(inTime(promise, 1, () => {
    reject(new Error('aborted'))
    return new Error('late')
  }, { ref: true }), { message: 'late' })
})

t.test('waiting for the end of work tells whether it has ended, however it has', async (t) => {
  t.equal(await settlesWithin(Promise.resolve(), 60_000), true)
  t.equal(await settlesWithin(Promise.reject(new Error('broken')), 60_000), true)
  const { promise, reject } = Promise.withResolvers<never>()
  t.equal(await settlesWithin(promise, 1, { ref: true }), false)
  // Nobody else handles this rejection.
  reject(new Error('too late'))
  await turn()
})

import t from 'tap'
import { TokenBuckets } from '../../plugins/support/token-bucket.ts'
import type { TooManyRequests } from '../../schema/http/errors.ts'

t.test('10.4 results of changes have a budget of bytes, which becomes free again', async (t) => {
  let now = 0
  const budget = new TokenBuckets({ burst: 1000, perMinute: 600, now: () => now })
  budget.of('ada').take(999)
  budget.require('ada')
  budget.of('ada').take(201)
  const retryAfter = () => {
    try {
      return budget.require('ada')
    } catch (error) {
      return (error as TooManyRequests).retryAfter
    }
  }
  t.equal(retryAfter(), 21)
  budget.require('eve')
  now = 20_000
  t.equal(retryAfter(), 1)
  now = 20_100
  t.equal(retryAfter(), undefined)
  for (let index = 0; index <= 10_000; index++) budget.of(`other ${index}`).take(2000)
  t.throws(() => budget.require('other 10000'))
  budget.require('other 0')
})

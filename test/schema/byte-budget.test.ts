import t from 'tap'
import { ByteBudget } from '../../schema/text/byte-budget.ts'
import type { TooManyRequests } from '../../schema/http/errors.ts'

t.test('10.4 results of changes have a budget of bytes, which becomes free again', async (t) => {
  let now = 0
  const budget = new ByteBudget(1000, 100_000, () => now)
  budget.add('ada', 999)
  budget.require('ada')
  budget.add('ada', 201)
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
  for (let index = 0; index <= 10_000; index++) budget.add(`other ${index}`, 2000)
  t.throws(() => budget.require('other 10000'))
  budget.require('other 0')
})

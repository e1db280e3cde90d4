import t from 'tap'
import { createRecentRejections } from '../../plugins/support/recent-rejections.ts'
import { TooManyPosts } from '../../schema/posts/post.ts'
import { stopClock } from '../helpers/stopped-clock.ts'

const minute = new TooManyPosts(60)

t.test('a key that was rejected often enough is rejected from memory, with the same error', async (t) => {
  const rejections = createRecentRejections({ Rejection: TooManyPosts, after: 2, maxMs: 60_000 })
  rejections.record('eve', minute)
  rejections.throwIfRejected('eve')
  rejections.record('eve', minute)
  t.throws(() => rejections.throwIfRejected('eve'), { code: 'TOO_MANY_POSTS', retryAfter: 60 })
  rejections.throwIfRejected('ada')
  rejections.clear()
  rejections.throwIfRejected('eve')
})

t.test('a key is not rejected from memory for longer than that', async () => {
  const rejections = createRecentRejections({ Rejection: TooManyPosts, after: 1, maxMs: 0 })
  rejections.record('eve', minute)
  rejections.throwIfRejected('eve')
})

t.test('what is over is forgotten, and nothing else', async (t) => {
  const clock = stopClock(t)
  const rejections = createRecentRejections({ Rejection: TooManyPosts, after: 2, maxMs: 5000 })
  rejections.record('early', minute)
  rejections.record('early', minute)
  rejections.record('soon', new TooManyPosts(1))
  clock.advance(1001)
  rejections.record('late', minute)
  rejections.forgetExpired()
  t.throws(() => rejections.throwIfRejected('early'))
  rejections.record('soon', minute)
  rejections.throwIfRejected('soon')
  rejections.record('late', minute)
  t.throws(() => rejections.throwIfRejected('late'))
})

t.test('of many rejected keys, those that were rejected last are remembered', async (t) => {
  const rejections = createRecentRejections({ Rejection: TooManyPosts, after: 1, maxMs: 60_000 })
  rejections.record('first', minute)
  for (let index = 1; index < 10_000; index++) rejections.record(`other ${index}`, minute)
  rejections.record('first', minute)
  rejections.record('last', minute)
  t.throws(() => rejections.throwIfRejected('first'))
  t.throws(() => rejections.throwIfRejected('last'))
  rejections.throwIfRejected('other 1')
})

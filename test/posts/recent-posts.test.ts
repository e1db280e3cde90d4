import fc from 'fast-check'
import t from 'tap'
import type { PostRow } from '../../db/posts/posts.ts'
import { positionOf, RecentPosts } from '../../plugins/posts/recent-posts.ts'
import { postAt } from '../helpers/post-source.ts'

const same = (posts: readonly PostRow[], others: readonly PostRow[]) =>
  posts.length === others.length && posts.every((post, index) => post === others[index])

t.test('7.7 the recent posts are all posts between two positions, whatever was added', async () => {
  fc.assert(fc.property(fc.array(
    fc.array(fc.record({ gap: fc.integer({ min: 1, max: 3 }), size: fc.constantFrom(0, 10, 3_000_000) }))
  ), fc.nat(), (batches, seed) => {
    const recent = new RecentPosts<PostRow>(5, 1)
    const all = []
    let position = 5
    for (const batch of batches) {
      const posts = batch.map(({ gap, size }) => {
        position += gap
        return postAt(position, { content: 'x'.repeat(size) })
      })
      all.push(...posts)
      recent.add(posts)
    }
    const kept = recent.after(recent.from)
    const after = recent.from + seed % (recent.until - recent.from + 1)
    const bytes = kept.reduce((sum, { content }) => sum + content.length, 0)
    return recent.until === position && bytes <= 8 * 1024 * 1024 &&
      same(kept, all.filter((post) => positionOf(post) > recent.from)) &&
      same(recent.after(after), all.filter((post) => positionOf(post) > after))
  }), { numRuns: 50 })
})

t.test('7.7 at most a thousand posts are kept', async (t) => {
  const recent = new RecentPosts<PostRow>(0, 1)
  recent.add(Array.from({ length: 1500 }, (_, index) => postAt(index + 1)))
  t.strictSame([recent.from, recent.until, recent.after(500).length], [500, 1500, 1000])
})

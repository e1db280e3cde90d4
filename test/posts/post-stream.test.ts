import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { PostRow } from '../../db/posts/posts.ts'
import { PostStream } from '../../plugins/posts/post-stream.ts'
import { positionOf } from '../../plugins/posts/recent-posts.ts'
import { postAt, PostSource } from '../helpers/post-source.ts'

/** Collects the positions of the posts of a stream in the background. A slow reader takes a turn for each. */
function collect (stream: PostStream<PostRow>, isSlow: boolean): number[] {
  const positions: number[] = []
  void (async () => {
    for await (const post of stream) {
      positions.push(positionOf(post))
      if (isSlow) await turn()
    }
  })()
  return positions
}

// More than there are posts.
const MOST_TURNS = 10_000

const step = fc.oneof(
  fc.record({
    kind: fc.constant('commit'),
    count: fc.integer({ min: 1, max: 120 }),
    gap: fc.integer({ min: 1, max: 3 }),
    author: fc.constantFrom('ada', 'grace'),
  }),
  fc.record({ kind: fc.constantFrom('announce', 'fail', 'release', 'turn', 'delete') })
) as fc.Arbitrary<{ kind: string, count?: number, gap?: number, author?: string }>

t.test('7.7 a stream yields every post after its position once and in order, whatever happens meanwhile', async (t) => {
  await fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: 150 }), fc.constantFrom('ada', undefined), fc.boolean(), fc.array(
    step, { maxLength: 30 }
  ), async (start, authorId, isSlow, steps) => {
    const source = new PostSource(100)
    for (let position = 1; position <= 100; position++) {
      source.commit(postAt(position, { authorId: position % 3 === 0 ? 'ada' : 'grace' }))
    }
    const all = [...source.posts]
    const stream = new PostStream(source, { position: start, epoch: 1, authorId })
    const yielded = collect(stream, isSlow)
    const deleted = new Set<number>()
    let position = 100
    for (const { kind, count = 0, gap = 1, author } of steps) {
      if (isSlow) await turn()
      if (kind === 'announce') source.announce()
      if (kind === 'fail') source.failures++
      if (kind === 'release') stream.release()
      if (kind === 'turn') await turn()
      if (kind === 'delete') {
        deleted.add(position)
        source.delete(position)
      }
      for (let index = 0; index < count; index++) {
        const post = postAt(position += gap, { authorId: author! })
        source.commit(post)
        all.push(post)
      }
    }
    source.announce()
    for (let turns = 0; turns < 100 || (!stream.idle && turns < MOST_TURNS); turns++) await turn()
    stream.close()
    const wanted = all.filter((post: PostRow) => positionOf(post) > start &&
      (authorId === undefined || post.authorId === authorId)).map(positionOf)
    const ordered = yielded.every((position, index) => index === 0 || position > yielded[index - 1]!)
    const missed = wanted.filter((position) => !yielded.includes(position) && !deleted.has(position))
    const invented = yielded.filter((position) => !wanted.includes(position))
    // A post that was yielded and deleted before it was announced is behind the recent ones.
    t.equal(stream.position, Math.max(start, source.recent.until, yielded.at(-1) ?? 0), 'everything has been read')
    return ordered && missed.length === 0 && invented.length === 0
  }), { numRuns: 100 })
})

t.test('7.7 a stream that has failed throws its failure, and one that was closed ends', async (t) => {
  const source = new PostSource()
  const [failed, closed] =
    [0, 0].map((position) => new PostStream(source, { position, epoch: 1, authorId: undefined, isLatest: true })) as [
      PostStream<PostRow>, PostStream<PostRow>
    ]
  const [failure, end] = [failed.next(), closed.next()]
  await turn()
  t.ok(failed.idle, 'it waits for posts')
  failed.fail(new Error('lost'))
  closed.close()
  await t.rejects(failure, { message: 'lost' })
  t.strictSame(await end, { value: undefined, done: true })
})

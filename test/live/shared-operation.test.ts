import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { PostStream } from '../../plugins/posts/post-stream.ts'
import { positionOf } from '../../plugins/posts/recent-posts.ts'
import { BytePool } from '../../routes/graphql/limits/byte-pool.ts'
import { SharedOperation, type Subscriber } from '../../routes/graphql/live/shared-operation.ts'
import type { Sink } from '../../routes/graphql/live/sink.ts'
import { postAt, PostSource } from '../helpers/post-source.ts'
import { until } from '../helpers/until.ts'
import { networksOf } from '../../schema/http/network.ts'

const MIB = 1024 * 1024

/** The connection of a client that reads only when it is told to. */
class Reader implements Sink {
  readonly transport = 'sse'
  readonly networks = networksOf('192.0.2.1')
  readonly events: string[] = []
  readonly errors: unknown[] = []
  waiting = 0
  reads = true
  #drained = () => {}

  deliver (event: string): void {
    this.events.push(event)
    if (!this.reads) this.waiting += event.length
  }

  drain (): Promise<void> {
    return new Promise((resolve) => { this.#drained = resolve })
  }

  complete (): void {}

  fail (errors: readonly unknown[]): void {
    this.errors.push(...errors)
  }

  /** Reads everything. */
  read (): void {
    this.waiting = 0
    this.#drained()
  }
}

interface Setup { ahead?: BytePool, size?: number, render?: (position: number) => Promise<string> }

/** Runs an operation for readers that all begin at the present. */
function start (t: Test, readers: readonly Reader[], { ahead = new BytePool(MIB), size = 10, render }: Setup = {}) {
  const source = new PostSource()
  const stream = new PostStream(source, { position: 0, epoch: 1, authorId: undefined, isLatest: true })
  const [slow, failures, rendered]: [Subscriber[], unknown[], number[]] = [[], [], []]
  const operation = new SharedOperation(stream, {
    async render (post) {
      rendered.push(positionOf(post))
      return render ? render(positionOf(post)) : `${post.position} `.padEnd(size, 'x')
    },
    onIdle () {},
    onSlow: (_, subscriber) => { slow.push(subscriber) },
    onFailed (operation, error) {
      failures.push(error)
      operation.fail([{ message: (error as Error).message }])
      operation.close()
    },
    ahead,
  })
  for (const sink of readers) operation.add({ sink, position: 0 })
  const running = operation.run()
  t.teardown(() => operation.close())
  const create = (count: number) => {
    for (let index = 0; index < count; index++) source.commit(postAt(source.posts.length + 1))
    source.announce()
  }
  return { operation, running, create, slow, failures, rendered }
}

const positions = ({ events }: Reader) => events.map((event) => parseInt(event))
const first = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

t.test('7.7 an event is rendered once, and every subscriber receives all events in order', async (t) => {
  const readers = [new Reader(), new Reader(), new Reader()]
  const { create, rendered } = start(t, readers)
  create(30)
  create(270)
  await until('all have been delivered', () => readers.every(({ events }) => events.length === 300))
  for (const reader of readers) t.strictSame(positions(reader), first(300))
  t.strictSame(rendered, first(300))
})

t.test('7.7 a subscriber that reads slower than others is removed, so that they do not wait for it', async (t) => {
  const [fast, lazy] = [new Reader(), new Reader()]
  lazy.reads = false
  const { create, slow } = start(t, [fast, lazy], { size: 100_000 })
  create(30)
  await until('the fast one has received all', () => fast.events.length === 30)
  t.strictSame(slow.map(({ sink }) => sink), [lazy])
  t.strictSame(positions(lazy), first(lazy.events.length), 'it has missed none until then')
  t.equal(slow[0]!.position, lazy.events.length, 'it can continue from there')
  t.ok(lazy.waiting > MIB && lazy.waiting < 1.2 * MIB)
})

t.test('1.13 if nobody reads, only a few events are rendered, and all follow later', async (t) => {
  const ahead = new BytePool(MIB)
  const reader = new Reader()
  reader.reads = false
  const { create, rendered } = start(t, [reader], { ahead, size: 50_000 })
  create(200)
  await until('the client has two events unread', () => reader.waiting === 100_000)
  for (let turns = 0; turns < 50; turns++) await turn()
  t.strictSame(positions(reader), [1, 2])
  t.ok(rendered.length <= 25, `${rendered.length} were rendered, for which there is room`)
  reader.reads = true
  reader.read()
  await until('all have been delivered', () => reader.events.length === 200)
  t.strictSame(positions(reader), first(200))
  t.strictSame(rendered, first(200), 'each was rendered once')
  t.ok(ahead.tryTake(MIB), 'the room for events ahead is free again')
})

t.test('7.7 if an event cannot be rendered, those before it are delivered and none after it', async (t) => {
  const reader = new Reader()
  const { create, running, failures } = start(t, [reader], {
    render: async (position) => {
      if (position === 8) throw new Error('it cannot be rendered')
      return `${position} `
    },
  })
  create(20)
  await running
  t.strictSame(positions(reader), first(7))
  t.equal(failures.length, 1)
  t.strictSame(reader.errors, [{ message: 'it cannot be rendered' }])
})

import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { readAhead, type Content } from '../../node/backup/read-ahead.ts'

const MIB = 1024 * 1024

interface Item { readonly id: number, readonly size: number }

async function * itemsOf (sizes: readonly number[]): AsyncGenerator<Item> {
  for (const [id, size] of sizes.entries()) yield { id, size }
}

async function bytesOf (content: Content | undefined): Promise<string | undefined> {
  if (!content) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Reads items whose content is their id. Each read waits until `release` is called. */
function createReads () {
  const begun: Item[] = []
  const waiting: (() => void)[] = []
  return {
    begun,
    /** Lets all reads end that have begun. */
    release: () => { for (const end of waiting.splice(0)) end() },
    read: async (item: Item) => {
      begun.push(item)
      await new Promise<void>((resolve) => { waiting.push(resolve) })
      return Readable.from([Buffer.from(`${item.id}`)])
    },
  }
}

/** Waits until nothing happens any more without a release. */
const settle = async () => { for (let count = 0; count < 50; count++) await turn() }

t.test('14.4 a backup reads small files at the same time, and yields all in order', async (t) => {
  const { begun, release, read } = createReads()
  const sizes = Array.from({ length: 100 }, () => 10)
  const ended = (async () => {
    const found: string[] = []
    for await (const [{ id }, content] of readAhead(itemsOf(sizes), read)) found.push(`${id}: ${await bytesOf(content)}`)
    return found
  })()
  await settle()
  t.equal(begun.length, 16, 'at the same time')
  for (let round = 0; round < sizes.length; round++) {
    release()
    await settle()
  }
  t.same(await ended, sizes.map((_, id) => `${id}: ${id}`))
})

t.test('14.4 what is read ahead is bounded: 16 MiB, and no large files', async (t) => {
  const { begun, read } = createReads()
  const whole = readAhead(itemsOf(Array.from({ length: 100 }, () => MIB)), read)
  void whole.next()
  await settle()
  t.ok(begun.reduce((sum, { size }) => sum + size, 0) <= 16 * MIB)

  const mixed = createReads()
  const all = readAhead(itemsOf([1, 5 * MIB, 2, MIB + 1, 3]), mixed.read)
  const first = all.next()
  await settle()
  t.same(mixed.begun.map(({ id }) => id), [0, 2, 4], 'large ones are not begun')
  mixed.release()
  t.same((await first).value![0].id, 0)
  const second = all.next()
  await settle()
  t.same(mixed.begun.map(({ id }) => id), [0, 2, 4, 1], 'before it is their turn')
  mixed.release()
  t.equal(await bytesOf((await second).value![1]), '1')
})

t.test('14.4 a file that holds more than its record says is not read to its end', async (t) => {
  let sent = 0
  const endless = async () => Readable.from((function * () {
    for (;;) {
      sent++
      yield Buffer.alloc(1000)
    }
  })())
  for await (const [, content] of readAhead(itemsOf([10]), endless)) {
    t.ok((await bytesOf(content))!.length > 10, 'which shows')
  }
  t.ok(sent < 100)
})

t.test('14.4 a read that fails ends the backup when it is its turn, and nothing goes on afterwards', async (t) => {
  let running = 0
  const read = async ({ id }: Item) => {
    running++
    await settle()
    running--
    if (id === 2) throw new Error('the store does not answer')
    return id === 1 ? undefined : Readable.from([Buffer.from('x')])
  }
  const seen: unknown[] = []
  await t.rejects(async () => {
    for await (const [{ id }, content] of readAhead(itemsOf([1, 1, 1, 1, 1]), read)) {
      seen.push([id, await bytesOf(content)])
    }
  }, { message: 'the store does not answer' })
  t.same(seen, [[0, 'x'], [1, undefined]])
  t.equal(running, 0)
  const early = readAhead(itemsOf([1, 1, 1, 1]), read)
  await early.next()
  await early.return(undefined)
  t.equal(running, 0, 'also when its reader ends')
})

import type { Readable } from 'node:stream'

// A store takes some time for each file. So many are read at the same time, which hold at most so many bytes. Larger
// ones are read when it is their turn: their bytes take longer than the answer of the store.
const FILES = 16
const BYTES = 16 * 1024 * 1024
const SMALL_BYTES = 1024 * 1024

/** The bytes of a file. */
export type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * Yields items, in order, each with its bytes, or undefined if there are none. Small ones are read ahead, in constant
 * memory. Throws the errors of `items` and of `read`.
 * @param read returns the bytes of an item
 */
export async function * readAhead<Item extends { readonly size: number }> (
  items: AsyncIterable<Item>, read: (item: Item) => Promise<Readable | undefined>
): AsyncGenerator<[Item, Content | undefined]> {
  const source = items[Symbol.asyncIterator]()
  const queue: { item: Item, held: number, content: Promise<Content | undefined> | undefined }[] = []
  let bytes = 0
  let next: IteratorResult<Item> | undefined

  async function fill (): Promise<void> {
    while (queue.length < FILES) {
      next ??= await source.next()
      if (next.done) return
      const item = next.value
      const held = item.size <= SMALL_BYTES ? item.size : 0
      if (queue.length > 0 && bytes + held > BYTES) return
      next = undefined
      bytes += held
      const content = item.size <= SMALL_BYTES ? load(item, read) : undefined
      // It is thrown when it is its turn.
      content?.catch(() => {})
      queue.push({ item, held, content })
    }
  }

  try {
    for (;;) {
      await fill()
      const first = queue.shift()
      if (!first) return
      yield [first.item, await (first.content ?? read(first.item))]
      bytes -= first.held
    }
  } finally {
    await Promise.allSettled(queue.map(({ content }) => content))
  }
}

// Stops at the first chunk beyond the size of an item: that there are more bytes is enough to know that they differ.
async function load<Item extends { readonly size: number }> (
  item: Item, read: (item: Item) => Promise<Readable | undefined>
): Promise<Uint8Array[] | undefined> {
  const bytes = await read(item)
  if (!bytes) return undefined
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of bytes as AsyncIterable<Uint8Array>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > item.size) break
  }
  return chunks
}

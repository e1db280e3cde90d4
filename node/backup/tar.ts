import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'

/** Thrown if bytes are not an archive that `readTar` reads. The message says what is wrong with it. */
export class InvalidArchive extends Error {}

/** Thrown if an archive ends too early. */
export class IncompleteArchive extends InvalidArchive {}

/** An entry of an archive. */
export interface TarEntry {
  readonly name: string
  /** In bytes. */
  readonly size: number
  /** The content. What is not read is skipped when the next entry is requested. */
  readonly content: AsyncIterable<Buffer>
}

/**
 * Yields the entries of an archive, in constant memory. Accepts regular files without extended headers only, because a
 * backup has no others. Throws `InvalidArchive`, and the errors of `chunks`.
 */
export async function * readTar (chunks: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const entries = extract()
  let failure: Error | undefined
  async function * watched (): AsyncGenerator<Buffer> {
    try {
      yield * chunks
    } catch (error) {
      failure = error as Error
      throw error
    }
  }
  const outcome = pipeline(watched(), entries).then(() => undefined, (error: Error) => error)
  // A stream of the library that is destroyed with another one does not say why.
  const explained = async (error: unknown) => failure ?? explain(await outcome ?? error as Error)

  async function * read (entry: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of entry) if (Buffer.isBuffer(chunk)) yield chunk
    } catch (error) {
      throw await explained(error)
    }
  }

  try {
    for await (const entry of entries) {
      const { name, size, type, pax } = entry.header
      if (type !== 'file' || pax) throw new InvalidArchive(`${name} is not a regular file`)
      if (!Number.isSafeInteger(size)) throw new InvalidArchive(`${name} has an impossible size`)
      const chunks = read(entry)
      // Leaving a loop over it does not end it, because that would destroy the whole archive.
      const content = { [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }) }
      yield { name, size, content }
      await skip(content)
    }
  } catch (error) {
    throw error instanceof InvalidArchive ? error : await explained(error)
  }
}

/** Reads the rest of a content. */
export async function skip (content: AsyncIterable<Buffer>): Promise<void> {
  const chunks = content[Symbol.asyncIterator]()
  while (!(await chunks.next()).done);
}

// The library has no codes. A header whose size is negative or no number is one of its invalid headers.
function explain (cause: Error): InvalidArchive {
  if (cause.message === 'Unexpected end of data') return new IncompleteArchive('it ends too early', { cause })
  return new InvalidArchive('the header of an entry is invalid, such as its checksum or its size', { cause })
}

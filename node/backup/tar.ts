// The container of a backup is a tar archive with headers as in POSIX.1-1988 (ustar), which every tar program reads. A restore accepts
// only what a backup contains: regular files with short names. A library would accept much more, and hosts would have to install it.
const BLOCK = 512
const SIZE = { at: 124, digits: 11 }
const CHECKSUM = { at: 148, bytes: 8 }
const MAGIC = Buffer.from('ustar\u000000')

/** Thrown if bytes are not an archive that `readTar` reads, or if they end too early. */
export class InvalidArchive extends Error {}

/** An entry of an archive. */
export interface TarEntry {
  readonly name: string
  /** In bytes. */
  readonly size: number
  /** The content. What is not read is skipped when the next entry is requested. */
  readonly content: AsyncIterable<Buffer>
}

/** Returns the header of a file that only its owner may read. The name has at most 99 ASCII characters. */
export function encodeHeader (name: string, size: number, at: Date): Buffer {
  const header = Buffer.alloc(BLOCK)
  header.write(name, 0, 'latin1')
  header.write('0000600', 100)
  header.write('0000000', 108)
  header.write('0000000', 116)
  const digits = size.toString(8)
  if (digits.length <= SIZE.digits) header.write(digits.padStart(SIZE.digits, '0'), SIZE.at)
  else {
    // Sizes from 8 GiB on are in base 256, as GNU tar writes them.
    header[SIZE.at] = 0x80
    header.writeBigUInt64BE(BigInt(size), SIZE.at + 4)
  }
  header.write(Math.floor(at.getTime() / 1000).toString(8).padStart(11, '0'), 136)
  header.write('0', 156)
  MAGIC.copy(header, 257)
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\0 `, CHECKSUM.at)
  return header
}

/** Returns the zeros that follow the content of an entry. */
export const padding = (size: number): Buffer => Buffer.alloc((BLOCK - size % BLOCK) % BLOCK)

/** Returns the end of an archive. */
export const endOfArchive = (): Buffer => Buffer.alloc(2 * BLOCK)

/** Yields the entries of an archive, in constant memory. Throws `InvalidArchive`, and the errors of `chunks`. */
export async function * readTar (chunks: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const bytes = createReader(chunks)
  try {
    for (;;) {
      const header = await bytes.exactly(BLOCK)
      if (header.every((byte) => byte === 0)) break
      const entry = decodeHeader(header)
      const content = bytes.upTo(entry.size)
      yield { ...entry, content }
      await skip(content)
      await bytes.exactly(padding(entry.size).length)
    }
    // The rest must be read, because the checksum of the compressed file is at its end.
    for await (const chunk of bytes.upTo(Infinity)) if (chunk.some((byte) => byte !== 0)) throw new InvalidArchive('unexpected bytes at the end')
  } finally {
    await bytes.close()
  }
}

/** Reads the rest of a content. */
export async function skip (content: AsyncIterable<Buffer>): Promise<void> {
  const chunks = content[Symbol.asyncIterator]()
  while (!(await chunks.next()).done);
}

function decodeHeader (header: Buffer): { name: string, size: number } {
  const isIntact = parseInt(header.toString('latin1', CHECKSUM.at, CHECKSUM.at + CHECKSUM.bytes), 8) === checksumOf(header)
  if (!isIntact || !header.subarray(257, 265).equals(MAGIC) || header[156] !== 0x30) throw new InvalidArchive('unexpected header')
  const name = header.toString('latin1', 0, header.indexOf(0))
  const size = header[SIZE.at] === 0x80
    ? Number(header.readBigUInt64BE(SIZE.at + 4))
    : parseInt(header.toString('latin1', SIZE.at, SIZE.at + SIZE.digits), 8)
  if (!Number.isSafeInteger(size)) throw new InvalidArchive('unexpected size')
  return { name, size }
}

// The sum of all bytes, with spaces in place of the sum.
function checksumOf (header: Buffer): number {
  let sum = 32 * CHECKSUM.bytes
  for (const [index, byte] of header.entries()) if (index < CHECKSUM.at || index >= CHECKSUM.at + CHECKSUM.bytes) sum += byte
  return sum
}

function createReader (chunks: AsyncIterable<Buffer>) {
  const iterator = chunks[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)

  // Yields the next `size` bytes. If it is called again for the same bytes, it continues where it stopped.
  async function * read (left: { size: number }): AsyncGenerator<Buffer> {
    while (left.size > 0) {
      if (rest.length === 0) {
        const { done, value } = await iterator.next()
        if (done) {
          if (left.size === Infinity) return
          throw new InvalidArchive('unexpected end')
        }
        rest = value
      }
      const chunk = rest.subarray(0, left.size)
      rest = rest.subarray(chunk.length)
      left.size -= chunk.length
      yield chunk
    }
  }

  return {
    upTo (size: number): AsyncIterable<Buffer> {
      const left = { size }
      return { [Symbol.asyncIterator]: () => read(left) }
    },

    async exactly (size: number): Promise<Buffer> {
      const parts: Buffer[] = []
      for await (const part of read({ size })) parts.push(part)
      return Buffer.concat(parts)
    },

    async close (): Promise<void> {
      await iterator.return?.()
    },
  }
}

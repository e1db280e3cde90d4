import { createHash, randomUUID } from 'node:crypto'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'

// Most uploads that are this small need no file.
const MEMORY_BYTES = 64 * 1024
const CHUNK_BYTES = 64 * 1024

/**
 * Keeps the bytes of a part until they are sent, perhaps several times. What takes more than 64 KiB is in a file, which
 * has no name, so that nothing is left of a process that is killed. A client may take hours for a part, which in memory
 * would cost others theirs.
 */
export class Spool {
  readonly #folder: string
  readonly #hash = createHash('sha256')
  #chunks: Uint8Array[] = []
  #file: FileHandle | undefined
  #size = 0

  constructor (folder: string) {
    this.#folder = folder
  }

  /** In bytes. */
  get size (): number {
    return this.#size
  }

  /** Appends bytes. Throws the errors of the file system. */
  async append (chunk: Uint8Array): Promise<void> {
    this.#hash.update(chunk)
    this.#size += chunk.length
    if (!this.#file) this.#chunks.push(Buffer.from(chunk))
    if (!this.#file && this.#size > MEMORY_BYTES) {
      this.#file = await openUnnamed(this.#folder)
      const chunks = this.#chunks
      this.#chunks = []
      for (const earlier of chunks) await this.#file.writeFile(earlier)
    } else if (this.#file) {
      await this.#file.writeFile(chunk)
    }
  }

  /** Returns what is sent, when all bytes are there. */
  seal (): SealedSpool {
    const file = this.#file
    if (!file) return sealBytes(Buffer.concat(this.#chunks))
    const size = this.#size
    return { size, sha256: this.#hash.digest('hex'), open: () => Readable.from(read(file, size), { objectMode: false }) }
  }

  /** Forgets the bytes. */
  async close (): Promise<void> {
    const file = this.#file
    this.#chunks = []
    this.#file = undefined
    await file?.close()
  }
}

/** The bytes of a request. */
export interface SealedSpool {
  /** In bytes. */
  readonly size: number
  /** In hexadecimal digits. */
  readonly sha256: string
  /** Returns the bytes, each time from the beginning. */
  open (): Readable
}

/** Returns bytes in memory as those of a request. */
export const sealBytes = (bytes: Buffer): SealedSpool => ({
  size: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  open: () => Readable.from(bytes.length > 0 ? [bytes] : []),
})

// A stream of the file would close it when a request fails, and it is sent again.
async function * read (file: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let position = 0; position < size;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position)
    if (bytesRead === 0) throw new Error('A part on its way to the store was cut off')
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function openUnnamed (folder: string): Promise<FileHandle> {
  const path = join(folder, randomUUID())
  const file = await open(path, 'wx+', 0o600)
  try {
    await rm(path)
  } catch (error) {
    await file.close()
    throw error
  }
  return file
}

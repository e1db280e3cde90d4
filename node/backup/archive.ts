import { createHash, randomBytes } from 'node:crypto'
import { createWriteStream, rmSync } from 'node:fs'
import { link, lstat, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Writable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { pack, type Pack } from 'tar-stream'
import { syncFolder } from '../embedded/cluster.ts'
import { BackupError, checksumsOf, SUMMARY, type Summary } from './format.ts'

/** How many entries share a list of checksums. The reader remembers the checksums of as many. */
export const CHECKSUMS_A_LIST = 1000

type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Collects the entries of a backup. */
export class Archive {
  readonly #at = new Date()
  readonly #chain = createHash('sha256')
  readonly #pack: Pack
  #checksums: string[] = []
  #lists = 0
  #entries = 0

  constructor (pack: Pack) {
    this.#pack = pack
  }

  /** Adds an entry. `content` must have exactly `size` bytes. Resolves when its bytes are on their way. */
  async add (name: string, size: number, content: Content): Promise<void> {
    const hash = createHash('sha256')
    async function * hashed (): AsyncGenerator<Uint8Array> {
      for await (const chunk of content) {
        hash.update(chunk)
        yield chunk
      }
    }
    await this.#write(name, size, hashed())
    this.#entries++
    // The format of the program sha256sum.
    this.#checksums.push(`${hash.digest('hex')}  ${name}\n`)
    if (this.#checksums.length === CHECKSUMS_A_LIST) await this.#addChecksums()
  }

  /** Adds the last checksums and the end of the backup. */
  async end (summary: Omit<Summary, 'entries' | 'checksums'>): Promise<void> {
    if (this.#checksums.length > 0) await this.#addChecksums()
    const checksums = this.#chain.digest('hex')
    const entry = Buffer.from(JSON.stringify({ entries: this.#entries, checksums, ...summary }, null, 2))
    await this.#write(SUMMARY, entry.length, [entry])
  }

  async #addChecksums (): Promise<void> {
    const list = Buffer.from(this.#checksums.join(''))
    this.#chain.update(list)
    this.#checksums = []
    await this.#write(checksumsOf(this.#lists++), list.length, [list])
  }

  // Only its owner may read what somebody extracts from the archive.
  async #write (name: string, size: number, content: Content): Promise<void> {
    await pipeline(content, this.#pack.entry({ name, size, mode: 0o600, mtime: this.#at }))
  }
}

/**
 * Yields the bytes of a backup while `fill` adds its entries, in constant memory. Throws the errors of `fill`. When the
 * reader ends early, adding the next bytes fails.
 */
export async function * archive (fill: (archive: Archive) => Promise<void>): AsyncGenerator<Uint8Array> {
  const tar = pack()
  const filled = fill(new Archive(tar)).then(() => tar.finalize(), (error: Error) => { tar.destroy(error) })
  try {
    for await (const chunk of tar) if (chunk instanceof Uint8Array) yield chunk
  } finally {
    tar.destroy()
    await filled
  }
}

/**
 * Writes bytes to a file, compressed, as `publishFile` does.
 * @param onBytes receives the number of compressed bytes so far
 */
export const writeArchive = (
  file: string, bytes: AsyncIterable<Uint8Array>, onBytes: (total: number) => void
): Promise<number> => publishFile(file, (output) => compress(bytes, output, onBytes))

/**
 * Creates a file that only its owner may read, and returns what `write` returns. The file gets its name when it is
 * complete and durable. Before, it has another name, and if writing fails, it is removed. Throws `BackupError` if the
 * file exists or cannot be written, and the errors of `write`.
 */
export async function publishFile<Result> (
  file: string, write: (output: Writable) => Promise<Result>
): Promise<Result> {
  // Another process may be writing to the same name.
  const partial = `${file}.${randomBytes(6).toString('hex')}.partial`
  const removePartial = () => rmSync(partial, { force: true })
  process.once('exit', removePartial)
  try {
    const output = createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true })
    const result = await write(output)
    await publish(partial, file)
    await syncFolder(dirname(file))
    return result
  } catch (error) {
    await rm(partial, { force: true }).catch(() => {})
    throw explainWrite(error as NodeJS.ErrnoException, file, partial)
  } finally {
    process.off('exit', removePartial)
  }
}

// A link, unlike a rename, fails if the file exists. Some file systems have no links.
async function publish (partial: string, file: string): Promise<void> {
  try {
    await link(partial, file)
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code!)) throw error
    if (await lstat(file).catch(() => undefined)) {
      throw Object.assign(new Error('the file exists'), { code: 'EEXIST', path: partial })
    }
    return rename(partial, file)
  }
  await rm(partial)
}

/**
 * Writes bytes to a stream, compressed. Returns their number. Throws `BackupError` if the reader of the stream has
 * ended, and the errors of `bytes`.
 */
export async function compress (
  bytes: AsyncIterable<Uint8Array>, output: Writable, onBytes: (total: number) => void
): Promise<number> {
  let size = 0
  async function * counted (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      size += chunk.length
      onBytes(size)
      yield chunk
    }
  }
  // Level 1, because the file should be written about as fast as the disk allows. Uploads are mostly compressed
  // already.
  await pipeline(bytes, createGzip({ level: 1 }), counted, output).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' || error.syscall !== 'write') throw error
    throw new BackupError('The program that reads the output has ended, so the backup is incomplete.', { cause: error })
  })
  return size
}

function explainWrite (error: NodeJS.ErrnoException, file: string, partial: string): Error {
  const { code, path, syscall } = error
  const isOurs = path === partial || path === dirname(file) || (path === undefined && syscall === 'write')
  if (!isOurs) return error
  if (code === 'EEXIST') return new BackupError(`${file} exists: choose another name.`, { cause: error })
  if (['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code!)) {
    return new BackupError(
      `There is no space for ${file} (${code}): free some, or choose another disk. The incomplete file was removed.`,
      { cause: error }
    )
  }
  return new BackupError(`${file} cannot be written (${code}): check the folder and its permissions.`, { cause: error })
}

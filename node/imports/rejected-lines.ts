import { constants, type Stats } from 'node:fs'
import { lstat, open, type FileHandle } from 'node:fs/promises'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/**
 * The file of the lines that were not imported. It contains what they contain, password hashes included, so only its
 * owner may read it. It is created with its first line.
 */
export class RejectedLines {
  readonly path: string
  #size: number
  #file: FileHandle | undefined

  /** @param size how much of the file is valid, if an interrupted import has begun it */
  constructor (path: string, size: number) {
    this.path = path
    this.#size = size
  }

  /** The size of the file, in bytes. */
  get size (): number {
    return this.#size
  }

  /** Throws an `Error` with a sentence if the file exists, which a new import does not overwrite. */
  async requireAbsent (): Promise<void> {
    const found = await lstat(this.path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw this.#explain(error)
    })
    if (found) throw new Error(`${this.path} exists: move it away, or name another file with --rejected.`)
  }

  /** Appends lines. They are on the disk when it resolves. */
  async append (lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return
    try {
      const file = this.#file ??= await this.#open()
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
      for (let done = 0; done < bytes.length;) {
        done += (await file.write(bytes, done, bytes.length - done, this.#size + done)).bytesWritten
      }
      await file.datasync()
      this.#size += bytes.length
    } catch (error) {
      throw this.#explain(error as NodeJS.ErrnoException)
    }
  }

  /** Removes what was appended since the file had a size. */
  async rewind (size: number): Promise<void> {
    if (size === this.#size) return
    this.#size = size
    await this.#file?.truncate(size).catch((error: NodeJS.ErrnoException) => { throw this.#explain(error) })
  }

  async close (): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
  }

  async #open (): Promise<FileHandle> {
    const found = await lstat(this.path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    const flags = O_WRONLY | O_NOFOLLOW | (found ? 0 : O_CREAT | O_EXCL)
    const file = await open(this.path, flags, 0o600)
    try {
      const stats = await file.stat()
      if (!isOwn(stats)) throw Object.assign(new Error('not a file of this user'), { code: 'EPERM' })
      await file.chmod(0o600)
      // What an interrupted import has written last belongs to lines that are now rejected again. If somebody has moved
      // the file away, a new one begins.
      this.#size = Math.min(this.#size, stats.size)
      await file.truncate(this.#size)
      return file
    } catch (error) {
      await file.close()
      throw error
    }
  }

  #explain (error: NodeJS.ErrnoException): Error {
    return new Error(`${this.path} cannot be written (${error.code ?? error.message}): name another file with --rejected.`, { cause: error })
  }
}

// Whoever may write to the folder could otherwise have put a file there that others can read.
const isOwn = (stats: Stats): boolean =>
  stats.isFile() && stats.nlink === 1 && (process.getuid === undefined || stats.uid === process.getuid())

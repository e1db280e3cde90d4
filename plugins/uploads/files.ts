import { createHash } from 'node:crypto'
import { mkdir, open, opendir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { PayloadTooLarge } from '../../schema/errors.ts'
import { HEAD_OCTETS, mediaTypeOf } from '../../schema/media-type.ts'

const NAMES_A_BATCH = 100

export interface Folder {
  /** Files that are being written. */
  readonly tmp: string
  /** Files that are kept. */
  readonly files: string
  /** Whether another database has used this folder, too. */
  readonly shared: boolean
}

export interface WrittenFile {
  /** In bytes. */
  size: number
  /** In hexadecimal digits. */
  sha256: string
  mediaType: string
}

/**
 * Creates the folders of uploads, and records there that this database uses them. Throws an `Error` with a sentence if the
 * folder cannot be used.
 *
 * @param installation identifies the database
 */
export async function claimFolder (uploadsDir: string, installation: string): Promise<Folder> {
  const root = resolve(uploadsDir)
  const [tmp, files, databases] = ['tmp', 'files', 'databases'].map((name) => join(root, name)) as [string, string, string]
  try {
    for (const folder of [tmp, files, join(databases, installation)]) await mkdir(folder, { recursive: true, mode: 0o700 })
    await sync(root)
    return { tmp, files, shared: await hasOtherDatabases(root, installation) }
  } catch (cause) {
    throw new Error(`usher: uploadsDir cannot be used, check that it is a writable folder: ${(cause as Error).message}`, { cause })
  }
}

/** Returns whether another database than this one has ever used the folder. */
export async function hasOtherDatabases (uploadsDir: string, installation: string): Promise<boolean> {
  return (await readdir(join(uploadsDir, 'databases'))).some((name) => name !== installation)
}

/**
 * Writes a new file that only its owner may read, and syncs it. Throws `PayloadTooLarge` beyond `maxBytes`; the caller must
 * remove the incomplete file.
 */
export async function writeDurably (path: string, bytes: AsyncIterable<Uint8Array>, maxBytes: number): Promise<WrittenFile> {
  const hash = createHash('sha256')
  let head = Buffer.alloc(0)
  let size = 0

  async function * measured (): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      size += chunk.length
      if (size > maxBytes) throw new PayloadTooLarge()
      hash.update(chunk)
      if (head.length < HEAD_OCTETS) head = Buffer.concat([head, chunk.subarray(0, HEAD_OCTETS - head.length)])
      yield chunk
    }
  }

  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(measured())
    await file.sync()
  } finally {
    await file.close()
  }
  return { size, sha256: hash.digest('hex'), mediaType: await mediaTypeOf(head, size) }
}

/** Moves a synced file to another folder. Resolves when the move is durable. */
export async function move (path: string, folder: string): Promise<void> {
  // The age of a stored file must count from now, because the rest of its request may have taken hours to arrive.
  await utimes(path, new Date(), new Date())
  await rename(path, join(folder, basename(path)))
  await sync(folder)
}

/** Removes a file if it exists. */
export async function remove (path: string): Promise<void> {
  await rm(path, { force: true })
}

/** Yields the names of the entries of a folder that have not changed for `forMs`, in batches. Throws when `signal` aborts. */
export async function * listOld (folder: string, forMs: number, signal: AbortSignal): AsyncGenerator<string[]> {
  let batch: string[] = []
  for await (const { name } of await opendir(folder)) {
    signal.throwIfAborted()
    if (await isOld(join(folder, name), forMs)) batch.push(name)
    if (batch.length < NAMES_A_BATCH) continue
    yield batch
    batch = []
  }
  yield batch
}

/** Returns whether an error comes from the file system, for example because it is full or read-only. */
export function isOfDisk (error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

// Another node may have removed the file meanwhile, which then does not count as old.
async function isOld (path: string, forMs: number): Promise<boolean> {
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }))
  return Date.now() - mtimeMs > forMs
}

async function sync (folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

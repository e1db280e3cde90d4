import { fsync } from 'node:fs'
import {
  access, chown, constants, mkdir, mkdtemp, open, opendir, readdir, rename, rm, rmdir, stat, type FileHandle,
} from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { isExhausted } from '../support/exhausted.ts'
import { StorageFailed, StorageFull } from '../../schema/uploads/upload.ts'
import type { Stage, StorageBackend, StoredBytes } from './backend.ts'

const MAX_ENTRIES_PER_BATCH = 100
// The disk is full, the quota of the user or the group is used up, or the file is larger than the file system or
// `ulimit -f` allows.
const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Creates the backend that stores uploads as files of a folder. The name of each file is its id. */
export function createFolder (path: string): StorageBackend {
  const root = resolve(path)
  const folders = { temporary: join(root, 'tmp'), part: join(root, 'parts'), published: join(root, 'files') }
  const databases = join(root, 'databases')
  let owner: Owner | undefined
  const pathOf = (stage: Stage, id: string) => join(folders[stage], id)

  return {
    root,
    location: folders.published,
    maxPauseMs: 0,

    async claim (database) {
      try {
        owner = await otherOwnerOf(root)
        for (const folder of [...Object.values(folders), join(databases, database)]) await createFolders(folder, owner)
        await syncFolder(root)
      } catch (cause) {
        throw explainFolder(cause as Error)
      }
    },

    async check () {
      try {
        await access(root, constants.R_OK | constants.W_OK | constants.X_OK).catch(undefinedIfMissing)
      } catch (cause) {
        throw explainFolder(cause as Error)
      }
    },

    explain: ({ code }) => ({ why: `${code}`, advice: 'check the folder, its disk and its permissions' }),

    exists: () => stat(root).then(() => true, () => false),

    isClaimed: (database) => stat(join(databases, database)).then(() => true, () => false),

    async count () {
      let count = 0
      const entries = await opendir(folders.published).catch(undefinedIfMissing)
      if (entries) for await (const { name } of entries) if (name) count++
      return count
    },

    async isShared (database) {
      return (await readdir(databases)).some((name) => name !== database)
    },

    async write (id, bytes, stage = 'temporary') {
      try {
        const file = await open(pathOf(stage, id), 'wx', 0o600)
        try {
          if (owner) await file.chown(owner.uid, owner.gid)
          // Chunk by chunk, because the file handles of Yarn Plug'n'Play do not write an iterable.
          for await (const chunk of bytes) await file.writeFile(chunk)
          await sync(file)
        } finally {
          await file.close()
        }
        if (stage === 'part') await syncFolder(folders.part)
      } catch (error) {
        throw describeFailure(error)
      }
    },

    async publish (id, from = 'temporary') {
      const written = pathOf(from, id)
      try {
        // The rest of the request may have taken hours to arrive.
        await touch(written)
        await rename(written, pathOf('published', id))
        await syncFolder(folders.published)
      } catch (error) {
        throw describeFailure(error)
      }
    },

    async read (id, range) {
      const file = await open(pathOf('published', id)).catch(undefinedIfMissing)
      return file?.createReadStream(range && { start: range.start, end: range.end })
    },

    async readPart (id) {
      const file = await open(pathOf('part', id)).catch(undefinedIfMissing)
      return file?.createReadStream()
    },

    has: (id) => stat(pathOf('published', id)).then(() => true, (error) => undefinedIfMissing(error) ?? false),

    async remove (stage, id) {
      await rm(pathOf(stage, id), { force: true })
    },

    async * listOld (stage, forMs, signal) {
      const now = await readTime(root)
      let batch: StoredBytes[] = []
      for await (const { name } of await opendir(folders[stage])) {
        signal.throwIfAborted()
        // Another node may have removed the file meanwhile. Folders are left alone, because Usher creates none here.
        const file = await stat(pathOf(stage, name)).catch(undefinedIfMissing)
        if (file?.isFile() && now - file.mtimeMs > forMs) batch.push({ id: name, size: file.size })
        if (batch.length < MAX_ENTRIES_PER_BATCH) continue
        yield batch
        batch = []
      }
      yield batch
    },

    close () {},
  }
}

export interface Owner { readonly uid: number, readonly gid: number }

// Returns the owner of a folder, or of the first one above it that exists, if this process is root and the owner is
// not. Commands may run as root, and the node that reads what they have written runs as the owner.
export async function otherOwnerOf (folder: string): Promise<Owner | undefined> {
  if (process.getuid?.() !== 0) return
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(undefinedIfMissing)
    if (found) return found.uid === 0 ? undefined : found
  }
}

export async function createFolders (folder: string, owner: Owner | undefined): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (!first || !owner) return
  for (let path = folder; path.length >= first.length; path = dirname(path)) await chown(path, owner.uid, owner.gid)
}

// Returns the time of the file system, which is that of another machine if the folder is mounted from there. By the
// clock of this machine, files that other nodes are writing could be old. Only what is written gets this time.
async function readTime (folder: string): Promise<number> {
  const written = await mkdtemp(join(folder, 'time-'))
  try {
    return (await stat(written)).mtimeMs
  } finally {
    await rmdir(written)
  }
}

// Gives a file the time of the file system, which `utimes` cannot. Truncating it to its size changes nothing else.
async function touch (path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.truncate((await file.stat()).size)
  } finally {
    await file.close()
  }
}

function undefinedIfMissing (error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

// Returns the error of the catalogue for one of the file system, which is full, read-only or broken, or closed to this
// user. Other errors are those of the bytes. A limit of the process says nothing about the storage.
export function describeFailure (error: unknown): unknown {
  if (!(error instanceof Error && 'syscall' in error) || isExhausted(error)) return error
  return NO_SPACE.has((error as NodeJS.ErrnoException).code ?? '')
    ? new StorageFull({ cause: error })
    : new StorageFailed({ cause: error })
}

const explainFolder = (cause: Error) =>
  new Error(`usher: uploadsDir cannot be used, ${adviceFor(cause)}: ${cause.message}`, { cause })

// Node's permission model allows folders to be read and written, and in some versions nothing allows to sync them.
function adviceFor ({ code, permission }: NodeJS.ErrnoException & { permission?: string }): string {
  if (code !== 'ERR_ACCESS_DENIED') return 'check that it is a writable folder'
  if (permission) return 'allow it with --allow-fs-read and --allow-fs-write'
  return 'because this version of Node syncs no file with --permission: leave out uploads, or --permission'
}

async function syncFolder (path: string): Promise<void> {
  const folder = await open(path)
  try {
    await sync(folder)
  } finally {
    await folder.close()
  }
}

// The file handles of Yarn Plug'n'Play do not implement `sync`, and with --permission, versions of Node have only one
// of these functions. A failure of the disk has a `syscall`. It must not be tried again, because the second time may
// succeed without the bytes.
async function sync (file: FileHandle): Promise<void> {
  try {
    await file.sync()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
    await fsyncOf(file.fd).catch(() => { throw error })
  }
}

const fsyncOf = promisify(fsync)

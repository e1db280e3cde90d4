import { chown, mkdir, open, opendir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { StorageFull } from '../../schema/upload.ts'
import type { Stage, StorageBackend, StoredBytes } from './backend.ts'

const ENTRIES_A_BATCH = 100

/**
 * Creates the backend that stores uploads as files of a folder. The name of each file is its id.
 * @param options.inheritsOwner whether a process of root gives what it creates to the owner of the folder, or of the nearest folder above
 * that exists, so that a node of that user can read it
 */
export function createFolder (path: string, { inheritsOwner = false }: { inheritsOwner?: boolean } = {}): StorageBackend {
  const root = resolve(path)
  const folders = { temporary: join(root, 'tmp'), published: join(root, 'files') }
  const databases = join(root, 'databases')
  let owner: Owner | undefined
  const pathOf = (stage: Stage, id: string) => join(folders[stage], id)

  return {
    location: folders.published,

    async claim (database) {
      try {
        if (inheritsOwner && process.getuid?.() === 0) owner = await ownerOf(root)
        for (const folder of [...Object.values(folders), join(databases, database)]) await createFor(owner, folder)
        await sync(root)
      } catch (cause) {
        throw new Error(`usher: uploadsDir cannot be used, check that it is a writable folder: ${(cause as Error).message}`, { cause })
      }
    },

    async isShared (database) {
      return (await readdir(databases)).some((name) => name !== database)
    },

    async write (id, bytes) {
      try {
        const file = await open(pathOf('temporary', id), 'wx', 0o600)
        try {
          if (owner) await file.chown(owner.uid, owner.gid)
          await file.writeFile(bytes)
          await file.sync()
        } finally {
          await file.close()
        }
      } catch (error) {
        throw toStorageFull(error)
      }
    },

    async publish (id) {
      const temporary = pathOf('temporary', id)
      try {
        // The rest of the request may have taken hours to arrive.
        await utimes(temporary, new Date(), new Date())
        await rename(temporary, pathOf('published', id))
        await sync(folders.published)
      } catch (error) {
        throw toStorageFull(error)
      }
    },

    async read (id, range) {
      const file = await open(pathOf('published', id)).catch(undefinedIfMissing)
      return file?.createReadStream(range)
    },

    async remove (stage, id) {
      await rm(pathOf(stage, id), { force: true })
    },

    async * listOld (stage, forMs, signal) {
      let batch: StoredBytes[] = []
      for await (const { name } of await opendir(folders[stage])) {
        signal.throwIfAborted()
        // Another node may have removed the file meanwhile. Folders are left alone, because Usher creates none here.
        const file = await stat(pathOf(stage, name)).catch(undefinedIfMissing)
        if (file?.isFile() && Date.now() - file.mtimeMs > forMs) batch.push({ id: name, size: file.size })
        if (batch.length < ENTRIES_A_BATCH) continue
        yield batch
        batch = []
      }
      yield batch
    },
  }
}

interface Owner { uid: number, gid: number }

// Returns the owner of a folder, or of the nearest one above that exists.
async function ownerOf (folder: string): Promise<Owner> {
  return await stat(folder).catch(undefinedIfMissing) ?? ownerOf(dirname(folder))
}

async function createFor (owner: Owner | undefined, folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (!owner || first === undefined) return
  for (let created = folder; created.length >= first.length; created = dirname(created)) await chown(created, owner.uid, owner.gid)
}

function undefinedIfMissing (error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

// Errors of the file system mean that it is full, read-only or broken. Other errors are those of the bytes.
function toStorageFull (error: unknown): unknown {
  return error instanceof Error && 'syscall' in error ? new StorageFull({ cause: error }) : error
}

async function sync (folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

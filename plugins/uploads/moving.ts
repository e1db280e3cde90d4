import type { StorageBackend, StoredBytes } from './backend.ts'

/**
 * Creates a backend that stores new bytes in one backend, and reads and removes those of both, so that they can be
 * moved from one to the other while nodes run.
 */
export function createMoving (target: StorageBackend, source: StorageBackend): StorageBackend {
  // A command does not claim them, and on its machine there may be no folder.
  const existing = async () =>
    (await Promise.all([target, source].map(async (backend) => await backend.exists() ? [backend] : []))).flat()

  return {
    root: target.root,
    location: target.location,
    maxPauseMs: Math.max(target.maxPauseMs, source.maxPauseMs),

    async claim (database) {
      await target.claim(database)
      await source.claim(database)
    },

    async check (options) {
      await Promise.all([target.check(options), source.check(options)])
    },

    exists: async () => await target.exists() || source.exists(),
    isClaimed: (database) => target.isClaimed(database),

    async count () {
      const counts = await Promise.all([target.count(), source.count()])
      return counts[0] + counts[1]
    },

    async isShared (database) {
      const shared = await Promise.all((await existing()).map((backend) => backend.isShared(database)))
      return shared.includes(true)
    },

    write: (id, bytes, stage, options) => target.write(id, bytes, stage, options),

    async publish (id, from) {
      const bytes = from === 'part' ? await source.readPart(id) : undefined
      if (!bytes) return target.publish(id, from)
      // Its part was stored before new bytes went to the target.
      await target.write(id, bytes)
      await target.publish(id)
      await source.remove('part', id)
    },

    maxReaders: target.maxReaders ?? source.maxReaders,

    // Bytes that are moved between the first two looks are found by the third.
    read: async (id, range) =>
      await target.read(id, range) ?? await source.read(id, range) ?? target.read(id, range),

    readPart: async (id) => await target.readPart(id) ?? source.readPart(id),

    async remove (stage, id) {
      await Promise.all([target.remove(stage, id), source.remove(stage, id)])
    },

    async * listOld (stage, forMs, signal): AsyncGenerator<StoredBytes[]> {
      for (const backend of await existing()) yield * backend.listOld(stage, forMs, signal)
    },

    // Bytes that the first one does not have are served by this node.
    ...target.addressOf && {
      async addressOf (id, headers) {
        return await target.has(id) ? target.addressOf!(id, headers) : undefined
      },
    } satisfies Pick<StorageBackend, 'addressOf'>,

    explain: target.explain,
    has: async (id) => await target.has(id) || source.has(id),

    close () {
      target.close()
      source.close()
    },
  }
}

import { listUnrecorded } from '../../db/uploads/uploads.ts'
import type { Database } from '../../db/tables/index.ts'
import type { StorageBackend, StoredBytes } from './backend.ts'

// A node may be about to write the record of a younger file.
export const STRAY_AFTER_MS = 3_600_000

/**
 * Yields the stored files that have no record in the database and are older than an hour, or than `forMs`, in batches.
 * Throws when `signal` aborts.
 */
export async function * listStrayFiles (
  db: Database, backend: StorageBackend, signal: AbortSignal, forMs = STRAY_AFTER_MS
): AsyncGenerator<StoredBytes[]> {
  for await (const files of backend.listOld('published', forMs, signal)) {
    const unrecorded = new Set(await listUnrecorded(db, files.map(({ id }) => id)))
    yield files.filter(({ id }) => unrecorded.has(id))
  }
}

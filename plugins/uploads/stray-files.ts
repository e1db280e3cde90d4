import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listUnrecorded } from '../../db/uploads.ts'
import type { Database } from '../../db/tables.ts'
import { listOld } from './files.ts'

// A node may be about to write the record of a younger file.
export const STRAY_AFTER_MS = 3_600_000

/** A stored file that has no record in the database. */
export interface StrayFile {
  readonly id: string
  /** In bytes. */
  readonly size: number
}

/** Yields the stored files that have no record and are older than an hour, in batches. Throws when `signal` aborts. */
export async function * listStrayFiles (db: Database, folder: string, signal: AbortSignal): AsyncGenerator<StrayFile[]> {
  for await (const ids of listOld(folder, STRAY_AFTER_MS, signal)) {
    const strays: StrayFile[] = []
    for (const id of await listUnrecorded(db, ids)) {
      // A file can disappear meanwhile. Usher creates no folders here, so folders are left alone.
      const file = await stat(join(folder, id)).catch(() => undefined)
      if (file?.isFile()) strays.push({ id, size: file.size })
    }
    yield strays
  }
}

import { createHash } from 'node:crypto'
import type { Database } from '../db/tables/index.ts'
import { findUploads, whileKept, type UploadRow } from '../db/uploads/uploads.ts'
import type { StorageBackend } from '../plugins/uploads/backend.ts'

// How many files are copied at the same time.
const COPIES = 4
const DAMAGED_NAMED = 10

export interface Move {
  readonly db: Database
  readonly from: StorageBackend
  readonly to: StorageBackend
  readonly signal: AbortSignal
  /** Is called when a file is at its new place only. */
  onFile? (size: number): void
}

export interface Moved {
  files: number
  bytes: number
  /** How many files have stayed, because they have no record, or are not as their record says. */
  left: number
  /** The ids of the first uploads whose bytes differ from their records. They are not moved. */
  damagedIds: string[]
}

/**
 * Moves the files of uploads from one backend to the other, while nodes that read both run. A file is copied, published
 * at its new place, read there again, and removed from the old one if its SHA-256 is that of its record. A move that
 * was interrupted goes on when it is repeated. Throws the errors of the backends and of the database.
 */
export async function moveUploads ({ db, from, to, signal, onFile = () => {} }: Move): Promise<Moved> {
  const moved: Moved = { files: 0, bytes: 0, left: 0, damagedIds: [] }
  // One publication at a time, because each has a transaction.
  let turn: Promise<unknown> = Promise.resolve()

  // Nodes may store files at the old place while others are moved.
  for (let before = -1; before < moved.files;) {
    before = moved.files
    moved.left = 0
    moved.damagedIds = []
    for await (const batch of from.listOld('published', -Infinity, signal)) {
      const waiting = await findUploads(db, batch.map(({ id }) => id))
      moved.left += waiting.filter((upload) => !upload).length
      const uploads = waiting.filter((upload) => upload !== undefined).values()
      const ended = await Promise.allSettled(Array.from({ length: COPIES }, async () => {
        for (const upload of uploads) await move(upload)
      }))
      // Not before all copies have ended, because whoever repeats the move would meet those that go on.
      for (const copy of ended) if (copy.status === 'rejected') throw copy.reason
    }
  }
  return moved

  async function move (upload: UploadRow): Promise<void> {
    signal.throwIfAborted()
    const { id } = upload
    const bytes = await from.read(id)
    // It was deleted meanwhile.
    if (!bytes) return
    // A move that was killed may have left it.
    await to.remove('temporary', id)
    let isSame = false
    try {
      const copied = measured(bytes)
      await to.write(id, copied.bytes)
      isSame = copied.isOf(upload)
      if (!isSame) {
        moved.left++
        if (moved.damagedIds.length < DAMAGED_NAMED) moved.damagedIds.push(id)
        return
      }
      // While it is published, nobody can delete it, so that no file remains of an upload that was deleted.
      const publishing = turn.then(() => whileKept(db, id, () => to.publish(id)))
      turn = publishing.catch(() => {})
      isSame = await publishing
    } finally {
      if (!isSame) await to.remove('temporary', id)
    }
    if (!isSame) return
    const stored = await to.read(id)
    // It was deleted meanwhile, at both places.
    if (!stored) return
    const read = measured(stored)
    for await (const chunk of read.bytes) void chunk
    if (!read.isOf(upload)) throw new Error(`${to.location} does not return the bytes of ${id} that it has stored`)
    await from.remove('published', id)
    moved.files++
    moved.bytes += Number(upload.size)
    onFile(Number(upload.size))
  }
}

// Returns the same bytes, and a function that says, after their end, whether they are those of a record.
function measured (bytes: AsyncIterable<Uint8Array>) {
  const hash = createHash('sha256')
  let length = 0
  async function * passed (): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      hash.update(chunk)
      length += chunk.length
      yield chunk
    }
  }
  return {
    bytes: passed(),
    isOf: ({ size, sha256 }: UploadRow): boolean => length === Number(size) && hash.digest('hex') === sha256,
  }
}

import type { Readable } from 'node:stream'

/** A range of bytes. Both ends are included. */
export interface ByteRange { start: number, end: number }

/** Bytes of a backend that are listed. */
export interface StoredBytes {
  id: string
  /** In bytes. */
  size: number
}

/** Temporary bytes are still being written, or wait for the rest of their request. Published bytes are kept. */
export type Stage = 'temporary' | 'published'

/**
 * A storage backend: it stores the bytes of uploads by id, and nothing else. Records, hashes, entity tags, ranges and limits are
 * handled above it. Several nodes, and several databases, may use it at the same time. `folder.ts` is the one that exists.
 */
export interface StorageBackend {
  /** The place of the published bytes, for people. */
  readonly location: string
  /** Records that a database uses this backend. Throws an `Error` with a sentence if the backend cannot be used. */
  claim (database: string): Promise<void>
  /** Returns whether another database than this one has ever claimed the backend. */
  isShared (database: string): Promise<boolean>
  /**
   * Writes temporary bytes under a new id, in constant memory. Resolves when they are durable. Throws `StorageFull` or the error of
   * `bytes`; what has been written then remains until it is removed.
   */
  write (id: string, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Publishes temporary bytes. Their age counts from now. Resolves when this is durable. Throws `StorageFull`. */
  publish (id: string): Promise<void>
  /** Returns published bytes, or undefined if there are none with this id. */
  read (id: string, range?: ByteRange): Promise<Readable | undefined>
  /** Removes bytes. Does nothing if there are none with this id in this stage. */
  remove (stage: Stage, id: string): Promise<void>
  /** Yields the bytes of a stage that have not changed for `forMs`, in batches. Throws when `signal` aborts. */
  listOld (stage: Stage, forMs: number, signal: AbortSignal): AsyncIterable<StoredBytes[]>
}

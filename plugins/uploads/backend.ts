import type { Readable } from 'node:stream'
import type { Metrics } from '../../db/telemetry/metrics.ts'
import type { Options } from '../../schema/options/options.ts'

/** A range of bytes. Both ends are included. */
export interface ByteRange { start: number, end: number }

/** A range of something that has `size` bytes. */
export interface SizedRange extends ByteRange { size: number }

/** Bytes of a backend that are listed. */
export interface StoredBytes {
  id: string
  /** In bytes. */
  size: number
}

/**
 * Temporary bytes are still being written, or wait for the rest of their request. A part has some of the bytes of an
 * upload whose other bytes arrive in later requests (contract 13.5): it may remain for days. Published bytes are kept.
 */
export type Stage = WrittenStage | 'published'

/** A stage whose bytes have arrived in a request. */
export type WrittenStage = 'temporary' | 'part'

/**
 * A storage backend: it stores the bytes of uploads by id, and nothing else. Records, hashes, entity tags, conditions,
 * limits and the log are above it (`storage.ts`, `routes/uploads/uploads.ts`). Several nodes, and several databases,
 * may use it at the same time. `open-backend.ts` selects one. Ids are UUIDs, unique across stages.
 *
 * A method without an error in its description throws whatever its store reports: a request then gets 500, and a
 * background task is logged and repeated later.
 */
export interface StorageBackend {
  /** The place of everything that it stores, for people. */
  readonly root: string
  /** The place of the published bytes, for people. */
  readonly location: string
  /** How many readers it serves at once; undefined if it has no limit of its own. */
  readonly maxReaders?: number | undefined
  /** How long temporary bytes may seem unchanged, to `listOld`, although a client is sending more of them. */
  readonly maxPauseMs: number
  /**
   * Records that a database uses this backend. Throws an `Error` if the backend cannot be used, with a sentence that
   * begins with `usher: ` and names the option.
   */
  claim (database: string): Promise<void>
  /**
   * Checks whether the backend can be used, without writing anything, before `claim` as well: whatever does not exist
   * yet can be created. Throws an `Error` with such a sentence.
   */
  check (options?: CheckOptions): Promise<void>
  /** Returns whether there is something to read, before `claim` as well. Creates nothing. */
  exists (): Promise<boolean>
  /** Returns whether this database has claimed the backend. */
  isClaimed (database: string): Promise<boolean>
  /** Returns how many bytes are published, before `claim` as well: 0 if nothing exists. */
  count (): Promise<number>
  /** Returns whether another database than this one has ever claimed the backend. */
  isShared (database: string): Promise<boolean>
  /**
   * Writes temporary bytes, or a part, under a new id, in constant memory; their number is not known before. A part is
   * durable when this resolves. Throws `StorageFull`, `StorageFailed`, the very error that `bytes` throws, or that of a
   * limit (`plugins/support/exhausted.ts`). What has been written then remains: the caller removes it.
   *
   * Only this process can publish temporary bytes, unless they are `durable`: then any other one can, also after this
   * one has ended, and `listOld` yields them.
   */
  write (
    id: string, bytes: AsyncIterable<Uint8Array>, stage?: WrittenStage, options?: { durable?: boolean }
  ): Promise<void>
  /**
   * Publishes temporary bytes, or those of a part, which are no longer in that stage then. Their age counts from now.
   * Resolves when they are durable. Throws the same errors. The bytes may then be in either stage or in both: the
   * caller removes them from both.
   */
  publish (id: string, from?: WrittenStage): Promise<void>
  /**
   * Returns published bytes, all or those of a range, or undefined if there are none with this id. Throws
   * `StorageUnavailable` if the store does not respond, or is known to have another number of bytes than `range` says,
   * and `Overloaded` if it serves as many readers as it may.
   */
  read (id: string, range?: SizedRange): Promise<Readable | undefined>
  /** Returns the bytes of a part, or undefined if there are none with this id. Throws the same errors. */
  readPart (id: string): Promise<Readable | undefined>
  /** Returns whether there are published bytes with this id. Throws the same errors. */
  has (id: string): Promise<boolean>
  /** Removes bytes. Does nothing if there are none with this id in this stage. Up to 100 calls run at the same time. */
  remove (stage: Stage, id: string): Promise<void>
  /**
   * Yields the bytes of a stage that have not changed for `forMs`, by the clock of the store, in batches of at most
   * 100. May yield what is not an upload. Throws when `signal` aborts.
   */
  listOld (stage: Stage, forMs: number, signal: AbortSignal): AsyncIterable<StoredBytes[]>
  /**
   * Returns an address at which anybody can read published bytes for a while, without this node, with these headers.
   * Undefined if there are none with this id. A backend without addresses, or whose options want none, lacks this.
   */
  addressOf? (id: string, headers: AddressHeaders): Promise<string | undefined>
  /** Returns why something has failed, and what can be done, for people: `cannot be read (why): advice`. */
  explain (error: NodeJS.ErrnoException): { why: string, advice: string }
  /** Closes its connections. */
  close (): void
}

/** What every store is opened with. */
export interface BackendOptions extends Pick<
  Options, 'uploadsDir' | 'uploadMaxBytes' | 'uploadMinBytesPerSecond' | 'deadlines'
> {
  /** Where it counts its requests, if somebody reads that. */
  readonly metrics?: Metrics | undefined
}

/** How a backend is checked. */
export interface CheckOptions {
  /** Whether what fails for the moment is repeated, which is the default. */
  readonly isRepeated?: boolean
}

/** The headers of a response to a request for an address. */
export interface AddressHeaders { readonly type: string, readonly disposition: string, readonly cacheControl: string }

import { StorageFailed } from '../../../schema/uploads/upload.ts'
import { completionOf } from './documents.ts'
import { listParts, listUploads, type Part } from './lists.ts'
import { putObject, requireObject, sizeOf } from './objects.ts'
import { requireDocument, requireTagOnly, requireText } from './proofs.ts'
import { InvalidAnswer, StoreError, type StoreRequests } from './requests.ts'
import { sealBytes, Spool } from './spool.ts'

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const MAX_PARTS = 10_000
const MIB = 1024 * 1024
/** How many bytes the parts have at least. Some stores refuse parts below 5 MiB. */
export const PART_BYTES = 8 * MIB

/**
 * Returns how many bytes the parts of uploads have that may have up to `maxBytes`. All parts of an upload have the same
 * size, because some stores require it.
 */
export const partBytesFor = (maxBytes: number): number =>
  Math.max(PART_BYTES, Math.ceil(Math.min(maxBytes, 5 * MIB ** 2) / MAX_PARTS / MIB) * MIB)

export interface WritingOptions {
  readonly store: StoreRequests
  readonly key: string
  /** The folder of parts that are not sent yet. */
  readonly folder: string
  readonly partBytes: number
}

/**
 * The bytes of an upload on their way to the store. As many as fit into a part are kept on this node, until they are
 * published by one request. More are sent in parts, one while the next one arrives, which the store joins when the
 * upload is published. Before that, nobody can read them.
 */
export class Writing {
  readonly #options: WritingOptions
  readonly #parts: Part[] = []
  #spool: Spool
  #uploadId: string | undefined
  // The store may have begun an upload whose id is not known here.
  #isUncertain = false
  #sending: Promise<void> | undefined
  #failure: { error: unknown } | undefined
  #size = 0

  constructor (options: WritingOptions) {
    this.#options = options
    this.#spool = new Spool(options.folder)
  }

  /** Whether there may be parts at the store that `abort` does not know. */
  get isUncertain (): boolean {
    return this.#isUncertain
  }

  /** Takes bytes. Throws the errors of the store and of the file system. */
  async add (chunk: Uint8Array): Promise<void> {
    const { partBytes } = this.#options
    for (let rest = chunk; rest.length > 0;) {
      // What fills a part exactly may be all.
      if (this.#spool.size === partBytes) await this.#sendPart()
      if (this.#failure) throw this.#failure.error
      const taken = rest.subarray(0, partBytes - this.#spool.size)
      await this.#spool.append(taken)
      this.#size += taken.length
      rest = rest.subarray(taken.length)
    }
  }

  /**
   * Ends the bytes. With `durable`, they are at the store when it resolves.
   */
  async end ({ durable }: { durable: boolean }): Promise<void> {
    if (!durable && this.#uploadId === undefined && !this.#sending) return
    if (this.#spool.size > 0 || !this.#sending) await this.#sendPart()
    await this.#settle()
    if (this.#isUncertain) await this.#abortOthers()
  }

  /** Makes the bytes an object. Resolves when it is durable. */
  async publish (): Promise<void> {
    const { store, key } = this.#options
    if (this.#uploadId !== undefined) {
      await complete(store, key, this.#uploadId, this.#parts, this.#size)
    } else {
      await putObject(store, key, this.#spool.seal())
    }
    await this.#spool.close()
  }

  /** Forgets the bytes, and has the store forget its parts. */
  async abort (): Promise<void> {
    await this.#sending?.catch(() => {})
    await this.#spool.close()
    const { store, key } = this.#options
    if (this.#uploadId !== undefined) await abortUpload(store, key, this.#uploadId)
  }

  /** Closes what this process needs for the bytes. */
  async close (): Promise<void> {
    await this.#spool.close()
  }

  // Sends the part that is complete, when the one before it is sent.
  async #sendPart (): Promise<void> {
    await this.#settle()
    const { store, key, folder } = this.#options
    const number = this.#parts.length + 1
    if (number > MAX_PARTS) throw new StorageFailed({ cause: new Error(`The file has more than ${MAX_PARTS} parts`) })
    this.#uploadId ??= await createUpload(store, key, () => { this.#isUncertain = true })
    const spool = this.#spool
    this.#spool = new Spool(folder)
    const query = { partNumber: `${number}`, uploadId: this.#uploadId }
    const send = async () => {
      try {
        const request = { operation: 'put', method: 'PUT', key, query, body: spool.seal() } as const
        this.#parts.push({ number, tag: await store.send(request, requireTagOnly) })
      } finally {
        await spool.close()
      }
    }
    this.#sending = send()
    // It is thrown when the bytes after it arrive, or end.
    this.#sending.catch((error: unknown) => { this.#failure = { error } })
  }

  // Another process that publishes the bytes looks for an upload with this key, and must find the one that has them.
  async #abortOthers (): Promise<void> {
    const { store, key } = this.#options
    const others = (await uploadsOf(store, key)).filter((uploadId) => uploadId !== this.#uploadId)
    await Promise.all(others.map((uploadId) => abortUpload(store, key, uploadId)))
  }

  async #settle (): Promise<void> {
    await this.#sending
    if (this.#failure) throw this.#failure.error
  }
}

async function createUpload (store: StoreRequests, key: string, wasUncertain: () => void): Promise<string> {
  const request = { operation: 'multipart', method: 'POST', key, query: { uploads: '' } } as const
  return store.send(request, (answer) => {
    const root = requireDocument(answer, 'InitiateMultipartUploadResult')
    if (requireText(answer, root, 'Key') !== key) throw new InvalidAnswer(answer, 'about another key')
    return requireText(answer, root, 'UploadId')
  }, wasUncertain)
}

/** Joins the parts of an upload to an object of this size. Resolves when it is durable. */
export async function complete (
  store: StoreRequests, key: string, uploadId: string, parts: readonly Part[], size: number
): Promise<void> {
  let isUncertain = false
  // It has up to a megabyte, for 10,000 parts.
  const body = sealBytes(Buffer.from(completionOf(parts)))
  const request = { operation: 'multipart', method: 'POST', key, query: { uploadId }, body } as const
  try {
    await store.send(request, async (answer) => {
      const { root } = answer
      const isConfirmed = root?.name === 'CompleteMultipartUploadResult' && root.textOf('ETag') && root.textOf('Key') === key
      if (!isConfirmed) await requireObject(store, key, size, answer)
    }, () => { isUncertain = true })
  } catch (error) {
    // An attempt whose answer was lost, or was none, has completed it.
    if (!(isNoSuchUpload(error) && isUncertain && await sizeOf(store, key) === size)) throw error
  }
}

/** Returns the uploads of several parts with this key. */
export async function uploadsOf (store: StoreRequests, key: string): Promise<string[]> {
  const found: string[] = []
  for await (const { uploads } of listUploads(store, key)) {
    for (const { key: listed, uploadId } of uploads) if (listed === key) found.push(uploadId)
  }
  return found
}

/** Has the store forget the parts of an upload. Does nothing if there is no such upload. */
export async function abortUpload (store: StoreRequests, key: string, uploadId: string): Promise<void> {
  try {
    await store.send({ operation: 'multipart', method: 'DELETE', key, query: { uploadId } }, async (answer) => {
      if (answer.status === 204) return
      await listParts(store, key, uploadId, { isRepeated: false })
      throw new InvalidAnswer(answer, 'and has not aborted the upload')
    })
  } catch (error) {
    if (!isNoSuchUpload(error)) throw error
  }
}

/** Returns whether an error says that there is no such upload. */
export const isNoSuchUpload = (error: unknown): boolean => error instanceof StoreError && error.code === 'NoSuchUpload'

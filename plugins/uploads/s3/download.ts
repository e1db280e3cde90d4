import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { SizedRange } from '../backend.ts'
import { describeObject, isNoSuchKey } from './objects.ts'
import { lengthOf, requireTag } from './proofs.ts'
import { InvalidAnswer, isTransient, StoreError, type AnswerHead, type StoreRequests } from './requests.ts'

// Times in a row that a connection may end without having brought a byte.
const ATTEMPTS = 3
// What stores and gateways answer that do not know ranges, or not all of them.
const NO_RANGES = new Set([400, 416, 501])

/** Which of the bytes of a body are those that are wanted, and how many the object has. */
interface Body { readonly skipped: number, readonly taken: number, readonly size: number }

/** A response of the store. */
interface Source extends Body { readonly response: IncomingMessage }

interface DownloadOptions {
  /** Opens the rest of the object, from an offset of the download. */
  reopen (offset: number): Promise<Source>
  /** How many bytes there are. */
  length: number
  /** How long the store may be silent while somebody waits for its bytes. */
  idleMs: number
}

/**
 * Returns the bytes of an object, or those of a range, or undefined if there is none with this key. What the store
 * sends must be of an object with the size that is expected, and always of the same object. A store that ignores
 * ranges, or refuses them, sends all, of which the range is taken.
 */
export async function openDownload (
  store: StoreRequests, key: string, range: SizedRange | undefined, idleMs: number
): Promise<Download | undefined> {
  let tag: string | undefined
  // The entity tags are compared here, because not all stores know conditions.
  const requireSame = (answer: AnswerHead) => {
    const found = requireTag(answer)
    tag ??= found
    if (found !== tag) throw new Error('The store has sent another object than before')
  }
  const open = (wanted: SizedRange | undefined) => openSource(store, key, wanted, requireSame)
  try {
    const first = await open(range)
    const { start, end, size } = range ?? { start: 0, end: first.size - 1, size: first.size }
    return new Download(first, {
      length: end - start + 1,
      idleMs,
      reopen: (offset) => open({ start: start + offset, end, size }),
    })
  } catch (error) {
    if (isNoSuchKey(error)) return undefined
    throw error
  }
}

async function openSource (
  store: StoreRequests, key: string, wanted: SizedRange | undefined, requireSame: (answer: AnswerHead) => void
): Promise<Source> {
  const open = async (headers: Record<string, string>): Promise<Source> => {
    let body: Body | undefined
    const request = { operation: 'get', method: 'GET', key, headers } as const
    const response = await store.open(request, async (answer) => {
      const size = lengthOf(answer.headers) ?? (answer.status === 200 ? await askSize(store, key, answer) : undefined)
      body = readHead(answer, size, wanted, 'range' in headers)
      requireSame(answer)
    })
    return { response, ...body! }
  }
  const isWhole = !wanted || (wanted.start === 0 && wanted.end === wanted.size - 1)
  if (isWhole) return open({})
  try {
    return await open({ range: `bytes=${wanted.start}-${wanted.end}` })
  } catch (error) {
    const isRefused = error instanceof StoreError && NO_RANGES.has(error.status)
    if (isRefused || error instanceof InvalidAnswer) return open({})
    throw error
  }
}

// Returns how many bytes an object has, which the answer does not say. It may be that of a gateway to everything.
async function askSize (store: StoreRequests, key: string, answer: AnswerHead): Promise<number> {
  const object = await describeObject(store, key, { isRepeated: false })
  if (object?.tag === requireTag(answer)) return object.size
  throw new InvalidAnswer(answer, 'and another object than for HEAD')
}

// Returns which bytes of a body are wanted. Throws `InvalidAnswer` if they are not in it.
function readHead (
  answer: AnswerHead, length: number | undefined, wanted: SizedRange | undefined, isRange: boolean
): Body {
  const { status, headers } = answer
  const coding = headers['content-encoding'] ?? 'identity'
  if (coding !== 'identity') throw new InvalidAnswer(answer, `with the coding ${coding}`)
  if (!wanted && status === 200) return { skipped: 0, taken: Infinity, size: length! }
  if (wanted && status === 200 && length === wanted.size) {
    const { start, end, size } = wanted
    // More bytes than the object should have must not pass for it.
    return { skipped: start, taken: end === size - 1 ? Infinity : end - start + 1, size }
  }
  if (wanted && status === 206) {
    const { start, end, size } = wanted
    const taken = end - start + 1
    const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(headers['content-range'] ?? '') ?? []
    const isAsked = Number(first) === start && Number(last) === end && (total === '*' || Number(total) === size)
    // A connection can be used again if its response is not cut off.
    if (isAsked && [undefined, taken].includes(length)) {
      return { skipped: 0, taken: length === undefined ? taken : Infinity, size }
    }
  }
  const sent = `${headers['content-range'] ?? 'no range'}, ${length} bytes`
  // Of a store that has problems with ranges, all bytes are asked for at once.
  throw new InvalidAnswer(answer, `and other bytes than asked for (${sent})`, { isTransient: !isRange })
}

/**
 * The bytes of an object. If the connection to the store is cut, the rest comes over another one, so that a reader only
 * notices that it takes longer. Destroying it closes the connection.
 */
export class Download extends Readable {
  readonly #options: DownloadOptions
  #response: IncomingMessage
  #received = 0
  #attempts = 0
  #timer: NodeJS.Timeout | undefined

  constructor (first: Source, options: DownloadOptions) {
    super()
    this.#options = options
    this.#response = first.response
    this.#follow(first)
  }

  override _read (): void {
    this.#wait()
    this.#response.resume()
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.#response.destroy()
    callback(error)
  }

  #wait (): void {
    clearTimeout(this.#timer)
    const { idleMs } = this.#options
    const late = () => this.#response.destroy(Object.assign(
      new Error(`The store has sent nothing for ${idleMs} ms`), { code: 'ETIMEDOUT', syscall: 'read' }))
    this.#timer = setTimeout(late, idleMs)
  }

  #follow ({ response, skipped, taken }: Source): void {
    this.#response = response
    let [skips, rest] = [skipped, taken]
    let failure: Error | undefined
    response.on('data', (chunk: Buffer) => {
      clearTimeout(this.#timer)
      const bytes = chunk.subarray(skips, skips + rest)
      skips = Math.max(0, skips - chunk.length)
      rest -= bytes.length
      if (bytes.length === 0) return this.#wait()
      this.#attempts = 0
      this.#received += bytes.length
      const isRead = this.push(bytes)
      if (rest === 0) response.destroy()
      else if (isRead) this.#wait()
      else response.pause()
    })
    response.on('error', (error) => { failure = error })
    response.on('close', () => {
      clearTimeout(this.#timer)
      if (this.destroyed) return
      // Without a length, a body that is cut off seems complete.
      if (this.#received >= this.#options.length) this.push(null)
      else void this.#continue(failure ?? hasEnded())
    })
    response.pause()
  }

  async #continue (error: Error): Promise<void> {
    if (++this.#attempts > ATTEMPTS || !isTransient(error)) return void this.destroy(error)
    try {
      const next = await this.#options.reopen(this.#received)
      if (this.destroyed) return void next.response.destroy()
      this.#follow(next)
      this._read()
    } catch (error) {
      this.destroy(error as Error)
    }
  }
}

const hasEnded = (): Error =>
  Object.assign(new Error('The connection to the store has ended too early'), { code: 'ECONNRESET' })

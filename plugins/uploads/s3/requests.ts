import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { S3Options } from '../../../schema/options/s3.ts'
import { isExhausted } from '../../support/exhausted.ts'
import { readDocument, type Element } from './documents.ts'
import { EMPTY_SHA256, pathOf, presign, queryOf, signRequest, type Credentials } from './signature.ts'
import type { SealedSpool } from './spool.ts'

// An import of these modules reads all of their members, which loads the HTTP client of Node.js.
const http = process.getBuiltinModule('node:http')
const https = process.getBuiltinModule('node:https')

// Connections of downloads wait for their readers, so they must not be those that uploads need.
export const MAX_DOWNLOADS = 1024
export const MAX_OTHERS = 64
const FREE_SOCKETS = 16
const ATTEMPTS = 4
const PAUSE_MS = 200
// A page of a list has a thousand keys, each of up to a kilobyte.
const LIST_BYTES = 8 * 1024 * 1024
const ANSWER_BYTES = 256 * 1024
// While a store joins parts or copies, it sends white space.
const ANSWER_PAUSES = 10
const HEADER_BYTES = 16 * 1024
// What a connection must carry, so that a body is not sent forever.
const MIN_BYTES_PER_MS = 64
// What is worth another attempt although the store has answered with 4xx: the bytes were changed on their way, or did
// not arrive in time.
const TRANSIENT = new Set([
  'RequestTimeout', 'XAmzContentSHA256Mismatch', 'BadDigest', 'InvalidDigest', 'IncompleteBody', 'OperationAborted',
])
const LOST = new Set([
  'ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN',
])

/** What a request does, for metrics. */
export const OPERATIONS = ['put', 'get', 'head', 'delete', 'list', 'multipart'] as const
export type Operation = typeof OPERATIONS[number]

export interface StoreRequest {
  readonly operation: Operation
  readonly method: string
  /** The key, or undefined for a request about the bucket. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: SealedSpool
  /** Whether it is sent again if it fails for the moment, which is the default. */
  readonly isRepeated?: boolean | undefined
}

/** The head of a response. */
export interface AnswerHead {
  readonly method: string
  readonly status: number
  readonly headers: IncomingMessage['headers']
}

/** The response to a request whose body was read. */
export interface StoreAnswer extends AnswerHead {
  readonly text: string
  /** The root of the document in the body; undefined if there is none, or one that is cut off. */
  readonly root: Element | undefined
}

/**
 * Returns what a response with a success status says. Throws `InvalidAnswer` if it has nothing that only the store can
 * know: gateways, captive portals and stores that are overloaded answer 200 to everything.
 */
export type Proof<Result> = (answer: StoreAnswer) => Result | Promise<Result>

/** The store has answered with an error. Its members are in the log, so they have no secrets. */
export class StoreError extends Error {
  readonly code: string
  readonly status: number
  /** The region that the store asks for. */
  readonly region: string | undefined
  /** The clock of the store, in milliseconds since 1970. */
  readonly time: number | undefined

  constructor ({ method, status, headers, root }: StoreAnswer) {
    const document = root?.name === 'Error' ? root : undefined
    const code = document?.textOf('Code')?.slice(0, 100) || `${status}`
    const detail = document?.textOf('Message')?.slice(0, 300)
    super(`The store has answered ${method} with ${status} ${code}${detail ? `: ${detail}` : ''}`)
    this.name = 'StoreError'
    this.code = code
    this.status = status
    this.region = (document?.textOf('Region') ?? String(headers['x-amz-bucket-region'] ?? '')) || undefined
    const time = Date.parse(headers.date ?? '')
    this.time = Number.isNaN(time) ? undefined : time
  }
}

/** A response with a success status does not prove what it says. Whether the store has done it is not known. */
export class InvalidAnswer extends Error {
  readonly status: number
  /** Whether the same request may get another response later. */
  readonly isTransient: boolean

  /** @param what what is wrong with the response, after "The store has answered PUT with 200 (text/html)" */
  constructor ({ method, status, headers }: AnswerHead, what: string, { isTransient = true } = {}) {
    const type = headers['content-type']?.slice(0, 100)
    super(`The store has answered ${method} with ${status}${type ? ` (${type})` : ''} ${what}`)
    this.name = 'InvalidAnswer'
    this.status = status
    this.isTransient = isTransient
  }
}

/** No answer came from the store: the error of the network is the cause. */
export class NoAnswer extends Error {
  readonly code: string | undefined

  constructor (cause: Error & { code?: string }) {
    super(cause.message, { cause })
    this.name = 'NoAnswer'
    this.code = cause.code
  }
}

/** Counts the attempts of requests, by their operation. */
export interface RequestCounts {
  attempt (operation: Operation): void
  failure (operation: Operation): void
}

export interface RequestsOptions {
  readonly s3: S3Options
  /** How long a store may be silent. */
  readonly timeoutMs: number
  /** How long a connection, with its TLS handshake, may take. */
  readonly connectMs: number
  readonly counts: RequestCounts
}

export type StoreRequests = ReturnType<typeof createRequests>

/**
 * Creates what sends requests to the bucket of an S3, signed, by `node:http` and over a bounded number of connections.
 * What fails for the moment is repeated with growing pauses. Throws `StoreError`, `InvalidAnswer`, `NoAnswer`, and the
 * error of a limit of this process (`plugins/support/exhausted.ts`).
 */
export function createRequests ({ s3, timeoutMs, connectMs, counts }: RequestsOptions) {
  const endpoint = new URL(s3.endpoint)
  const isTls = endpoint.protocol === 'https:'
  const start = isTls ? https.request : http.request
  const host = s3.pathStyle ? endpoint.host : `${s3.bucket}.${endpoint.host}`
  const base = `${endpoint.pathname.replace(/\/$/, '')}${s3.pathStyle ? `/${s3.bucket}` : ''}`
  const credentials: Credentials = s3
  const createAgent = (maxSockets: number) =>
    new (isTls ? https.Agent : http.Agent)({ keepAlive: true, maxSockets, maxFreeSockets: FREE_SOCKETS })
  const agents = { downloads: createAgent(MAX_DOWNLOADS), others: createAgent(MAX_OTHERS) }
  // `reusedSocket` is false for a request that has waited for a connection and then got one of another request.
  const connected = new WeakSet<Socket>()
  const partsOf = ({ method, key = '', query = {} }: Pick<StoreRequest, 'method' | 'key' | 'query'>) =>
    ({ method, host, path: pathOf(`${base}/${key}`), query })
  const urlOf = ({ path, query }: ReturnType<typeof partsOf>) =>
    Object.keys(query).length > 0 ? `${path}?${queryOf(query)}` : path

  // Resolves with the head of the response.
  function attempt (request: StoreRequest, agent: Agent): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const parts = partsOf(request)
    const { body } = request
    const bytes = body?.open()
    const sized: Record<string, string> = body || request.method === 'PUT' || request.method === 'POST'
      ? { 'content-length': `${body?.size ?? 0}` }
      : {}
    const headers = {
      ...signRequest(parts, request.headers ?? {}, body?.sha256 ?? EMPTY_SHA256, credentials, new Date()), ...sized,
    }
    const port = endpoint.port || (isTls ? 443 : 80)
    const sending = start({
      host: host.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''),
      port,
      method: request.method,
      path: urlOf(parts),
      headers,
      agent,
      maxHeaderSize: HEADER_BYTES,
    })
    limit(sending, body?.size ?? 0)
    sending.on('error', reject)
    sending.on('response', resolve)
    // After 101, which nothing here asks for, Node.js closes the connection without an error.
    sending.on('close', () => reject(
      Object.assign(new Error('The store has closed the connection without an answer'), { code: 'ECONNRESET' })
    ))
    // The error of the request says what has happened.
    if (bytes) pipeline(bytes, sending, () => {})
    else sending.end()
    return promise
  }

  // Destroys a request that takes too long until the head of its response is there.
  function limit (sending: ClientRequest, size: number): void {
    const late = (what: string, ms: number) => () =>
      sending.destroy(Object.assign(new Error(`${what} within ${ms} ms`), { code: 'ETIMEDOUT', syscall: 'connect' }))
    const total = timeoutMs + Math.ceil(size / MIN_BYTES_PER_MS)
    let timer: NodeJS.Timeout | undefined
    sending.on('socket', (socket) => {
      const answering = () => {
        clearTimeout(timer)
        timer = setTimeout(late('The store has not answered', total), total)
      }
      if (connected.has(socket)) return answering()
      timer = setTimeout(late('The store could not be connected', connectMs), connectMs)
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        connected.add(socket)
        answering()
      })
    })
    sending.on('response', () => clearTimeout(timer))
    sending.on('close', () => clearTimeout(timer))
  }

  async function repeat<Result> (request: StoreRequest, attempt: () => Promise<Result>): Promise<Result> {
    const until = performance.now() + 2 * timeoutMs
    for (let number = 1; ; number++) {
      counts.attempt(request.operation)
      try {
        return await attempt()
      } catch (error) {
        if (isFailure(error)) counts.failure(request.operation)
        const isLast = number === ATTEMPTS || request.isRepeated === false || performance.now() > until
        if (isLast || !isTransient(error)) throw explain(error as Error)
        // Up to 1.6 seconds, at random, so that nodes do not repeat at the same time.
        await delay(Math.min(PAUSE_MS, timeoutMs / 20) * 2 ** number * (0.5 + Math.random() / 2))
      }
    }
  }

  return {
    /** The place of a key, for people. */

    /**
     * Sends a request, reads its response, and resolves with what that proves. `wasUncertain` is told that an attempt
     * has failed whose effect is not known.
     */
    send: <Result>(
      request: StoreRequest, prove: Proof<Result>, wasUncertain: () => void = () => {}
    ): Promise<Result> => repeat(request, async () => {
      let isRefused = false
      try {
        const answer = await readAnswer(request, await attempt(request, agents.others))
        isRefused = answer.status >= 300 && answer.status < 500
        // Copies and completions may fail after their status was sent.
        if (answer.status >= 300 || answer.root?.name === 'Error') throw new StoreError(answer)
        return await prove(answer)
      } catch (error) {
        if (!isRefused) wasUncertain()
        throw error
      }
    }),

    /**
     * Sends a request and resolves with its response, whose body has not been read.
     * @param prove throws if the head does not prove that the body is what was asked for
     */
    open: (request: StoreRequest, prove: (head: AnswerHead) => unknown): Promise<IncomingMessage> =>
      repeat(request, async () => {
        const response = await attempt(request, agents.downloads)
        const { statusCode: status = 0, headers } = response
        if (status >= 300) throw new StoreError(await readAnswer(request, response))
        try {
          await prove({ method: request.method, status, headers })
          return response
        } catch (error) {
          response.destroy()
          throw error
        }
      }),

    /** Returns an address at which anybody can read a key for some seconds. */
    presign (key: string, query: Readonly<Record<string, string>>, seconds: number): string {
      const parts = partsOf({ method: 'GET', key, query })
      const signed = presign(parts, seconds, credentials, new Date())
      return `${endpoint.protocol}//${host}${urlOf({ ...parts, query: signed })}`
    },

    close (): void {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }

  async function readAnswer (
    { method, operation }: StoreRequest, response: IncomingMessage
  ): Promise<StoreAnswer> {
    const text = await readText(response, timeoutMs, operation === 'list' ? LIST_BYTES : ANSWER_BYTES)
    return { method, status: response.statusCode!, headers: response.headers, text, root: readDocument(text) }
  }
}

async function readText (response: IncomingMessage, timeoutMs: number, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  const late = (ms: number) => () => response.destroy(Object.assign(
    new Error(`The store has not sent its answer within ${ms} ms`), { code: 'ETIMEDOUT', syscall: 'read' }))
  const idle = setTimeout(late(timeoutMs), timeoutMs)
  const total = setTimeout(late(ANSWER_PAUSES * timeoutMs), ANSWER_PAUSES * timeoutMs)
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      idle.refresh()
      size += chunk.length
      if (size > maxBytes) throw new Error(`The answer of the store has over ${maxBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  } finally {
    clearTimeout(idle)
    clearTimeout(total)
  }
}

const explain = (error: Error): Error => {
  const isExplained = [StoreError, InvalidAnswer, NoAnswer].some((kind) => error instanceof kind)
  return isExplained || isExhausted(error) ? error : new NoAnswer(error)
}

// What is not found, or not changed because of a condition, is no failure of the store.
const isFailure = (error: unknown): boolean =>
  !(error instanceof StoreError) || ![404, 412].includes(error.status)

/** Returns whether the same request may succeed later. */
export function isTransient (error: unknown): boolean {
  if (error instanceof InvalidAnswer) return error.isTransient
  if (error instanceof StoreError) {
    const { status, code } = error
    // A store that knows no such request will not know it later.
    return status < 300 || (status >= 500 && status !== 501) || status === 429 || TRANSIENT.has(code)
  }
  if (isExhausted(error)) return false
  const { code = '' } = error as NodeJS.ErrnoException
  return LOST.has(code) || code.startsWith('HPE_')
}

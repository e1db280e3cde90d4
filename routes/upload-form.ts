import type { IncomingMessage } from 'node:http'
import type { Multipart } from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import type { SizeLimit } from '../plugins/uploads/quota.ts'
import { BodyStalled, ClientDisconnected, InvalidInput, PayloadTooLarge, UsherError } from '../schema/errors.ts'
import { basename, MAX_DESCRIPTION_BYTES, UploadInput } from '../schema/upload.ts'
import { createParser } from '../schema/validator.ts'

const PARTS = 100
const HEADER_BYTES = 16 * 1024
const CHUNK_BYTES = 64 * 1024

/** Bytes that a form may have in addition to its file: the description, and fields that Usher ignores. */
export const FORM_OVERHEAD_BYTES = 256 * 1024

/** The parts of an upload's form that have been read so far. */
export interface ReadForm<File> {
  file?: File
  filename?: string
  description?: unknown
  /** Problems of the parts, one sentence for each field. The keys are field names. */
  readonly problems: Map<string, string>
}

export interface ParsedForm<File> {
  file: File
  filename: string
  description: string
}

export interface Limits extends SizeLimit {
  /** Milliseconds without a byte after which the body is rejected. */
  idleMs: number
  /** Least bytes that must arrive in each period of `idleMs`. */
  minBytesPerPeriod: number
}

/**
 * Reads a multipart body into `form`. It reads to the end even if a part is wrong, because 413 comes before 400 (contract 1.7).
 * Passes the bytes of the file to `write`. Its result becomes `form.file` as soon as it is there, so that the caller can discard
 * the file if a later part fails. Throws the error of the limit, `PayloadTooLarge`, `BodyStalled`, `InvalidInput` if the body
 * is malformed, `ClientDisconnected`, and the errors of `write`.
 */
export async function readForm<File> (
  request: FastifyRequest, limits: Limits, form: ReadForm<File>, write: (bytes: AsyncIterable<Uint8Array>, limit: SizeLimit) => Promise<File>
): Promise<void> {
  // Its events have been emitted already, so reading it would never end.
  if (request.raw.destroyed) throw new ClientDisconnected()
  const release = watch(request.raw, limits)
  let files = 0
  try {
    for await (const part of wellFormed(request.parts(optionsOf(limits)))) {
      if (part.type === 'file') await takeFile(part)
      else takeField(part)
    }
  } finally {
    release()
  }

  async function takeFile ({ file, fieldname, filename }: Multipart & { type: 'file' }): Promise<void> {
    if (++files > 1) form.problems.set('file', 'file must be a single file')
    if (fieldname === 'description') form.problems.set('description', 'description must be a text field')
    // A file that is not consumed would block the parts that follow it.
    if (files > 1 || fieldname !== 'file') return void file.resume()
    form.filename = basename(filename)
    form.file = await write(wellFormed(file), limits)
  }

  function takeField ({ fieldname, value }: Multipart & { type: 'field' }): void {
    if (fieldname === 'file') form.problems.set('file', 'file must be sent as a file')
    if (fieldname !== 'description') return
    if (form.description !== undefined) form.problems.set('description', 'description must be given once')
    form.description = value
  }
}

const parse = createParser(UploadInput)

/** Returns the values of a form. Throws `InvalidInput` with all of its problems, in the order of the schema (contract 1.2). */
export function parseForm<File> ({ problems, ...values }: ReadForm<File>): ParsedForm<File> {
  const found = violations(values)
  const errors = Object.keys(UploadInput.properties)
    .flatMap((field) => problems.get(field) ?? found.filter((sentence) => sentence.startsWith(`${field} `)))
  if (errors.length > 0) throw new InvalidInput(...errors)
  return values as ParsedForm<File>
}

function violations (values: object): readonly string[] {
  try {
    parse(values)
    return []
  } catch (error) {
    return (error as InvalidInput).errors
  }
}

// Every option is set, because @fastify/multipart merges these with the options of a host that has registered it.
function optionsOf ({ maxBytes }: Limits) {
  return {
    limits: {
      // One byte more than allowed, so that a file that is too large can be told from one of exactly the allowed size.
      fileSize: maxBytes + 1,
      fieldSize: MAX_DESCRIPTION_BYTES,
      fieldNameSize: HEADER_BYTES,
      headerSize: HEADER_BYTES,
      headerPairs: PARTS,
      fields: PARTS,
      files: PARTS,
      parts: PARTS,
    },
    throwFileSizeLimit: false,
    preservePath: true,
    defCharset: 'utf8',
    fileHwm: CHUNK_BYTES,
    highWaterMark: CHUNK_BYTES,
    isPartAFile: (field?: string, type?: string, filename?: string) =>
      filename !== undefined || (field === 'file' && type === 'application/octet-stream'),
  }
}

// Maps the parser's errors, some of which have no status: for a body that is cut off, has no boundary or too many parts, or has
// a field that is named like a member of Object.prototype.
async function * wellFormed<Item> (items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield * items
  } catch (error) {
    if (error instanceof UsherError) throw error
    if ((error as { statusCode?: number }).statusCode === 413) throw new PayloadTooLarge()
    throw new InvalidInput('body is not valid multipart/form-data')
  }
}

// Fails the reading of a body that is too large as a whole, stalls, or is so slow that it merely occupies its connection. Returns
// a function that stops watching.
function watch (raw: IncomingMessage, { maxBytes, tooLarge, idleMs, minBytesPerPeriod }: Limits): () => void {
  let received = 0
  let receivedBefore = 0
  const timer = setTimeout(() => stop(new BodyStalled()), idleMs)
  const rate = setInterval(() => {
    if (received - receivedBefore < minBytesPerPeriod) stop(new BodyStalled())
    receivedBefore = received
  }, idleMs)
  raw.on('data', count)
  // After the end of the body, only the disk takes time.
  raw.once('end', release)
  return release

  function count (chunk: Uint8Array): void {
    received += chunk.length
    timer.refresh()
    if (received > maxBytes + FORM_OVERHEAD_BYTES) stop(tooLarge())
  }

  function stop (error: Error): void {
    release()
    // The reader of the body receives the error. `destroy` would close the connection before the response is sent.
    raw.emit('error', error)
  }

  function release (): void {
    clearTimeout(timer)
    clearInterval(rate)
    raw.off('data', count)
  }
}

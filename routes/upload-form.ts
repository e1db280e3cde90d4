import type { IncomingMessage } from 'node:http'
import type { Multipart } from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import { BodyStalled, InvalidInput, PayloadTooLarge, UsherError } from '../schema/errors.ts'
import { basename, MAX_DESCRIPTION_OCTETS, UploadInput } from '../schema/upload.ts'
import { createCheck } from '../schema/validator.ts'

const PARTS = 100
const HEADER_OCTETS = 16 * 1024
const CHUNK_OCTETS = 64 * 1024

/** Octets that a form may take besides its file: the description, and fields that nobody asked for. */
export const ENVELOPE_OCTETS = 256 * 1024

/** What has been read of an upload's form. */
export interface ReadForm<File> {
  file?: File
  filename?: string
  description?: unknown
  /** What is wrong with the parts themselves: a sentence a field. */
  readonly problems: Map<string, string>
}

export interface Limits {
  /** Octets of the file. */
  maxBytes: number
  /** Milliseconds without a byte. */
  idleMs: number
  /** Bytes that must arrive within each period of `idleMs`. */
  minBytesPerPeriod: number
}

/**
 * Reads the form to its end, whatever is wrong with it: a body that is too large is to be refused as such. The
 * file goes to `write`, whose result is the form's `file` at once, so that a caller can discard it. Throws
 * `PayloadTooLarge`, `BodyStalled`, `InvalidInput` for a body that is no form, and what `write` throws.
 */
export async function readForm<File> (
  request: FastifyRequest, limits: Limits, form: ReadForm<File>, write: (bytes: AsyncIterable<Uint8Array>) => Promise<File>
): Promise<void> {
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
    // Nobody else reads it, and an unread file would hold up the rest.
    if (files > 1 || fieldname !== 'file') return void file.resume()
    form.filename = basename(filename)
    form.file = await write(wellFormed(file))
  }

  function takeField ({ fieldname, value }: Multipart & { type: 'field' }): void {
    if (fieldname === 'file') form.problems.set('file', 'file must be sent as a file')
    if (fieldname !== 'description') return
    if (form.description !== undefined) form.problems.set('description', 'description must be given once')
    form.description = value
  }
}

const check = createCheck(UploadInput)

/** Throws `InvalidInput` with all that is wrong with a form, in the order of the schema (contract 1.2). */
export function checkForm ({ problems, ...values }: ReadForm<unknown>): void {
  const found = violations(values)
  const errors = Object.keys(UploadInput.properties)
    .flatMap((field) => problems.get(field) ?? found.filter((sentence) => sentence.startsWith(`${field} `)))
  if (errors.length > 0) throw new InvalidInput(...errors)
}

function violations (values: object): readonly string[] {
  try {
    check(values)
    return []
  } catch (error) {
    return (error as InvalidInput).errors
  }
}

// Everything is said, for a host's own @fastify/multipart would add its options to what is left out.
function optionsOf ({ maxBytes }: Limits) {
  return {
    limits: {
      // One more than allowed, which tells a file that is too large from one that is not.
      fileSize: maxBytes + 1,
      fieldSize: MAX_DESCRIPTION_OCTETS,
      fieldNameSize: HEADER_OCTETS,
      headerSize: HEADER_OCTETS,
      headerPairs: PARTS,
      fields: PARTS,
      files: PARTS,
      parts: PARTS,
    },
    throwFileSizeLimit: false,
    preservePath: true,
    defCharset: 'utf8',
    fileHwm: CHUNK_OCTETS,
    highWaterMark: CHUNK_OCTETS,
    isPartAFile: (field?: string, type?: string, filename?: string) =>
      filename !== undefined || (field === 'file' && type === 'application/octet-stream'),
  }
}

// The parser's own errors are of many kinds, some with no status: a body cut off, without a boundary, of too
// many parts, with a field named like a member of Object.prototype.
async function * wellFormed<Item> (items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield * items
  } catch (error) {
    if (error instanceof UsherError) throw error
    throw (error as { statusCode?: number }).statusCode === 413 ? new PayloadTooLarge() : new InvalidInput('body is not valid multipart/form-data')
  }
}

// Ends the reading of a body that is too large as a whole, that stalls, or that is so slow that it only occupies its
// connection; until the returned function is called.
function watch (raw: IncomingMessage, { maxBytes, idleMs, minBytesPerPeriod }: Limits): () => void {
  let received = 0
  let receivedBefore = 0
  const timer = setTimeout(() => stop(new BodyStalled()), idleMs)
  const rate = setInterval(() => {
    if (received - receivedBefore < minBytesPerPeriod) stop(new BodyStalled())
    receivedBefore = received
  }, idleMs)
  raw.on('data', count)
  // What takes time from here on is the disk.
  raw.once('end', release)
  return release

  function count (chunk: Uint8Array): void {
    received += chunk.length
    timer.refresh()
    if (received > maxBytes + ENVELOPE_OCTETS) stop(new PayloadTooLarge())
  }

  function stop (error: Error): void {
    release()
    // Told to whoever reads it. `destroy` would take the connection along, and the answer with it.
    raw.emit('error', error)
  }

  function release (): void {
    clearTimeout(timer)
    clearInterval(rate)
    raw.off('data', count)
  }
}

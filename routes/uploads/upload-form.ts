import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import type { Multipart } from '@fastify/multipart'
import { parse as parseDisposition } from 'content-disposition'
import type { FastifyRequest } from 'fastify'
import type { SizeLimit } from '../../plugins/uploads/quota.ts'
import { BodyStalled, ClientDisconnected, InvalidInput, PayloadTooLarge, UsherError } from '../../schema/http/errors.ts'
import { basename, MAX_DESCRIPTION_BYTES, UploadInput, type Visibility } from '../../schema/uploads/upload.ts'
import { createParser } from '../../schema/http/validator.ts'
import { watchPace, type FormBody, type Pace } from './upload-body.ts'

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
  visibility?: unknown
  /** Problems of the parts, one sentence for each field. The keys are field names. */
  readonly problems: Map<string, string>
}

export interface ParsedForm<File> {
  file: File
  filename: string
  description: string
  visibility: Visibility
}

export interface Limits extends SizeLimit, Pace {}

/**
 * Reads a multipart body of a request into `form`. A file without name and bytes counts as absent: browsers send one
 * for an input in which nothing was chosen. It reads to the end even if a part is wrong, because 413 comes before 400
 * (contract 1.7).
 * Passes the bytes of the file to `write`. Its result becomes `form.file` as soon as it is there, so that the caller
 * can discard the file if a later part fails. Throws the error of the limit, `PayloadTooLarge`, `BodyStalled`,
 * `InvalidInput` if the body is malformed, `ClientDisconnected`, and the errors of `write`.
 */
export async function readForm<File> (
  request: FastifyRequest, body: FormBody, limits: Limits, form: ReadForm<File>,
  write: (bytes: AsyncIterable<Uint8Array>, limit: SizeLimit) => Promise<File>
): Promise<void> {
  // Its events have been emitted already, so reading it would never end.
  if (body.destroyed) throw new ClientDisconnected()
  const release = watch(body, limits)
  const headers = collectHeaders(body)
  // @fastify/multipart reads the member `raw` of a request, and logs its headers at the level `trace`, with the token
  // and the cookies.
  const log = Object.create(request.log, { trace: { value () {} } })
  const reading: FastifyRequest = Object.create(request, { raw: { value: body }, log: { value: log } })
  let files = 0
  try {
    for await (const part of wellFormed(reading.parts(optionsOf(limits, headers.keep)))) {
      if (part.type === 'file') await takeFile(part, headers.kept.shift())
      else takeField(part)
    }
  } finally {
    release()
  }

  async function takeFile (part: Multipart & { type: 'file' }, header: PartHeader | undefined): Promise<void> {
    const { fieldname, filename, mimetype } = part
    const bytes = wellFormed<Uint8Array>(part.file)
    const isText = fieldname === 'description' && filename === undefined
    if (isText) return takeDescription(await readText(bytes, mimetype, header))
    const first = await bytes.next()
    if (first.done && !filename) return
    if (++files > 1) form.problems.set('file', 'file must be a single file')
    if (fieldname === 'description' || fieldname === 'visibility') {
      form.problems.set(fieldname, `${fieldname} must be a text field`)
    }
    // A file that is not consumed would block the parts that follow it.
    if (files > 1 || fieldname !== 'file') return drain(bytes)
    const isDecodable = !header || isUtf8(Buffer.from(header.disposition, 'latin1'))
    if (!isDecodable) form.problems.set('filename', 'filename must be UTF-8')
    form.filename = basename(header ? nameOf(header, filename) : filename)
    form.file = await write(first.done ? bytes : startingWith(first.value, bytes), limits)
  }

  function takeDescription (value: unknown): void {
    if (form.description !== undefined) form.problems.set('description', 'description must be given once')
    const isDecodable = value !== undefined
    if (!isDecodable) form.problems.set('description', 'description must be UTF-8, or text in the charset of its part')
    form.description = value ?? ''
  }

  function takeField ({ fieldname, value }: Multipart & { type: 'field' }): void {
    if (fieldname === 'file' && value !== '') form.problems.set('file', 'file must be sent as a file')
    if (fieldname !== 'visibility') return
    if (form.visibility !== undefined) form.problems.set('visibility', 'visibility must be given once')
    form.visibility = value
  }
}

async function * startingWith<Item> (first: Item, rest: AsyncIterable<Item>): AsyncGenerator<Item> {
  yield first
  yield * rest
}

async function drain (items: AsyncGenerator): Promise<void> {
  while (!(await items.next()).done);
}

/** The header fields of a part, each byte a character. */
interface PartHeader {
  disposition: string
  type: string
}

type Fields = Partial<Record<string, string[]>>
// What @fastify/multipart pipes a body to, and how that parser tells the fields of each part. Only its own listeners
// get them: it passes on a file name in which bytes that are not UTF-8 are replaced and `filename*` is ignored, and
// no charset.
type Parser = { _parser?: { parser?: Pick<Readable, 'prependListener'> } }
type PartStream = Pick<Readable, 'prependListener'>

// Returns the fields of the parts that are kept. `keep` keeps those of the part that the parser has just begun.
function collectHeaders (body: FormBody) {
  const kept: (PartHeader | undefined)[] = []
  let current: PartHeader | undefined
  const { pipe } = body
  body.pipe = (parser, options) => {
    body.pipe = pipe
    const parts = (parser as Parser)._parser?.parser
    parts?.prependListener('part', (part: PartStream) => part.prependListener('header', (fields: Fields) => {
      current = { disposition: fields['content-disposition']?.[0] ?? '', type: fields['content-type']?.[0] ?? '' }
    }))
    return body.pipe(parser, options)
  }
  return { kept, keep: () => { kept.push(current) } }
}

// Returns the name of a file: `filename*` comes first (RFC 6266 4.3), although forms should not have it (RFC 7578
// 4.2). The parser's result is only better for a backslash, which it knows from an escape.
function nameOf ({ disposition }: PartHeader, parsed: string | undefined): string | undefined {
  const { 'filename*': extended, filename } = parseDisposition(Buffer.from(disposition, 'latin1').toString()).parameters
  return extended === undefined && disposition.includes('\\') ? parsed : filename
}

// Reads a text, or the beginning of one that is too long. Returns undefined if its bytes are no text in its charset.
async function readText (
  bytes: AsyncIterable<Uint8Array>, mediaType: string, header: PartHeader | undefined
): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of bytes) {
    if (size <= MAX_DESCRIPTION_BYTES) chunks.push(chunk)
    size += chunk.length
  }
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(header?.type ?? '')?.[1]
  const text = decode(Buffer.concat(chunks), charset, { isWhole: size <= MAX_DESCRIPTION_BYTES })
  if (text === undefined || !mediaType.startsWith('application/json')) return text
  try {
    return JSON.parse(text)
  } catch {
    throw new InvalidInput('body is not valid multipart/form-data')
  }
}

function decode (bytes: Buffer, charset: string | undefined, { isWhole }: { isWhole: boolean }): string | undefined {
  try {
    // A text that is cut off is too long anyway.
    return new TextDecoder(charset, { fatal: isWhole, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const parse = createParser(UploadInput)

/**
 * Returns the values of a form. Throws `InvalidInput` with all of its problems, in the order of the schema (contract
 * 1.2).
 */
export function parseForm<File> ({ problems, ...values }: ReadForm<File>): ParsedForm<File> {
  const found = violations(values)
  const errors = Object.keys(UploadInput.properties)
    .flatMap((field) => problems.get(field) ?? found.filter((sentence) => sentence.startsWith(`${field} `)))
  if (errors.length > 0) throw new InvalidInput(...errors)
  return { visibility: 'public', ...values } as ParsedForm<File>
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
function optionsOf ({ maxBytes }: Limits, onFile: () => void) {
  return {
    limits: {
      // One byte more than allowed, so that a file that is too large can be told from one of exactly the allowed size.
      fileSize: Math.max(maxBytes, MAX_DESCRIPTION_BYTES) + 1,
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
    // The description as well, because its bytes are needed to tell whether they are text.
    isPartAFile (field?: string, type?: string, filename?: string): boolean {
      const isNameless = field === 'description' || (field === 'file' && type === 'application/octet-stream')
      const isFile = filename !== undefined || isNameless
      if (isFile) onFile()
      return isFile
    },
  }
}

// Maps the parser's errors, some of which have no status: for a body that is cut off, has no boundary or too many
// parts, or has a field that is named like a member of Object.prototype.
async function * wellFormed<Item> (items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield * items
  } catch (error) {
    if (error instanceof UsherError) throw error
    if ((error as { statusCode?: number }).statusCode === 413) throw new PayloadTooLarge()
    throw new InvalidInput('body is not valid multipart/form-data')
  }
}

// Fails the reading of a body that is too large as a whole, stalls, or is so slow that it merely occupies its
// connection. Returns a function that stops watching.
function watch (body: Readable, { maxBytes, tooLarge, ...pace }: Limits): () => void {
  let received = 0
  const unwatch = watchPace(body, pace, () => stop(new BodyStalled()))
  body.on('data', count)
  body.once('end', release)
  return release

  function count (chunk: Uint8Array): void {
    received += chunk.length
    if (received > maxBytes + FORM_OVERHEAD_BYTES) stop(tooLarge())
  }

  function stop (error: Error): void {
    release()
    // The reader of the body receives the error. `destroy` would close the connection before the response is sent.
    body.emit('error', error)
  }

  function release (): void {
    unwatch()
    body.off('data', count)
  }
}

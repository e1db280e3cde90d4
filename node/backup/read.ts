import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CHECKSUMS_A_LIST } from './archive.ts'
import {
  BackupError, entryOf, FORMAT, MANIFEST, parseManifest, parseSummary, type DataEntry, type Entry,
  type Manifest, type Summary,
} from './format.ts'
import { IncompleteArchive, InvalidArchive, readTar, skip, type TarEntry } from './tar.ts'

// The limit for entries that are read as a whole.
const TEXT_BYTES = 4 * 1024 * 1024

type Bytes = AsyncIterable<Buffer>

/** What is done with the content of a backup. Without a function, the content is only verified. */
export interface Visitor {
  manifest? (manifest: Manifest): Promise<void> | void
  table? (name: string, content: Bytes): Promise<void>
  file? (id: string, size: number, content: Bytes): Promise<void>
}

/**
 * Reads a backup once, in constant memory, and verifies every byte. Returns its end. Throws `BackupError` if it is not
 * a complete and intact backup of this format, and the errors of the visitor, which has then seen a part of the backup.
 * @param onBytes receives the number of bytes that were read so far
 */
export async function readBackup (
  file: string, visitor: Visitor, onBytes: (total: number) => void = () => {}
): Promise<Summary> {
  const input = createReadStream(file)
  const gunzip = createGunzip()
  input.on('data', () => onBytes(input.bytesRead))
  // `readTar` sees the errors of both streams.
  pipeline(input, gunzip, () => {})
  const state: State = { hashes: [], chain: createHash('sha256'), entries: 0, lists: 0 }
  try {
    for await (const entry of readTar(gunzip)) await readEntry(file, entry, state, visitor)
  } catch (error) {
    throw explainRead(error as NodeJS.ErrnoException, file, state.manifest)
  } finally {
    input.destroy()
  }
  const { summary } = state
  if (!summary || state.hashes.length > 0) throw incomplete(file)
  if (summary.entries !== state.entries || summary.checksums !== state.chain.digest('hex')) throw damaged(file)
  return summary
}

interface State {
  manifest?: Manifest
  summary?: Summary
  /** The checksums of the entries that no list has verified yet. */
  hashes: string[]
  readonly chain: ReturnType<typeof createHash>
  entries: number
  /** How many lists of checksums were read. */
  lists: number
  /** The last entry with rows or with a file. */
  last?: DataEntry
}

async function readEntry (
  file: string, { name, size, content }: TarEntry, state: State, visitor: Visitor
): Promise<void> {
  if (state.summary) throw new InvalidArchive(`${name} comes after its end`)
  if (!state.manifest && name !== MANIFEST) throw new InvalidArchive(`it does not begin with ${MANIFEST}`)
  const entry = name === MANIFEST && !state.manifest ? undefined : entryOf(name)
  if (state.manifest && !entry) throw new InvalidArchive(`${name} is unknown or in it twice`)
  if (entry && state.manifest) requireOrder(name, entry, state, state.manifest)

  if (entry?.kind === 'checksums') {
    const list = await readText(content, size)
    if (list !== state.hashes.join('')) throw damaged(file)
    state.chain.update(list)
    state.lists++
    state.hashes = []
    return
  }
  if (entry?.kind === 'summary') {
    state.summary = parseSummary(JSON.parse(await readText(content, size)))
    return
  }
  const hash = createHash('sha256')
  const verified = { [Symbol.asyncIterator]: () => hashed(content, hash) }
  if (!entry) {
    state.manifest = readManifest(file, await readText(verified, size))
    await visitor.manifest?.(state.manifest)
  } else if (entry.kind === 'table') await visitor.table?.(entry.table, verified)
  else await visitor.file?.(entry.id, size, verified)
  await skip(verified)
  state.entries++
  state.hashes.push(`${hash.digest('hex')}  ${name}\n`)
  if (state.hashes.length > CHECKSUMS_A_LIST) throw new InvalidArchive('it has no checksums')
}

// A backup has its tables in the order of the manifest, their parts in that of their numbers, and then files in that of
// their ids. So no set of names is needed to find those that are in it twice.
function requireOrder (name: string, entry: Entry, state: State, { tables }: Manifest): void {
  const last = state.last
  const wrong = () => new InvalidArchive(`${name} is in it twice, or at the wrong place`)
  if (entry.kind === 'summary') return
  if (entry.kind === 'checksums') {
    if (entry.number !== state.lists) throw wrong()
    return
  }
  if (entry.kind === 'file') {
    if (last?.kind === 'file' && last.id >= entry.id) throw wrong()
  } else {
    if (last?.kind === 'file') throw wrong()
    const placeOf = ({ table }: { table: string }) => tables.findIndex((described) => described.name === table)
    if (placeOf(entry) < 0) throw new InvalidArchive(`it has rows of a table that it does not describe, ${entry.table}`)
    const isNext = last?.kind === 'table' && last.table === entry.table
    if (entry.number !== (isNext ? last.number + 1 : 0)) throw wrong()
    if (last && !isNext && placeOf(last) > placeOf(entry)) throw wrong()
  }
  state.last = entry
}

async function * hashed (content: Bytes, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    hash.update(chunk)
    yield chunk
  }
}

async function readText (content: Bytes, size: number): Promise<string> {
  if (size > TEXT_BYTES) throw new InvalidArchive('a list in it is too large')
  const chunks: Buffer[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function readManifest (file: string, text: string): Manifest {
  const { format, version, release } = JSON.parse(text) as Partial<Manifest>
  if (format !== 'usher backup') throw new InvalidArchive('it is of another program')
  if (version !== FORMAT) {
    throw new BackupError(
      `${file} has the format ${version}, of release ${release}, and this release reads the format ${FORMAT}: restore it with release ${release}.`
    )
  }
  return parseManifest(JSON.parse(text))
}

const incomplete = (file: string, cause?: Error) =>
  new BackupError(`${file} is incomplete: its end is missing. Copy it again, or use another backup.`, { cause })
const damaged = (file: string, cause?: Error) => {
  const what = cause instanceof InvalidArchive ? cause.message : 'its content does not have its checksum'
  return new BackupError(`${file} is damaged: ${what}. Copy it again, or use another backup.`, { cause })
}

function explainRead (error: NodeJS.ErrnoException, file: string, manifest?: Manifest): Error {
  if (error instanceof BackupError) return error
  const { code = '', path } = error
  if (code === 'ENOENT' && path === file) return new BackupError(`There is no file ${file}.`, { cause: error })
  if (path === file || ['EISDIR', 'EIO'].includes(code)) {
    return new BackupError(`${file} cannot be read (${code}): check its permissions.`, { cause: error })
  }
  const isUnreadable =
    code.startsWith('Z_') || error instanceof InvalidArchive || (!manifest && error instanceof SyntaxError)
  if (!isUnreadable && !(error.name === 'InvalidInput' || error instanceof SyntaxError)) return error
  const isCut = code === 'Z_BUF_ERROR' || error instanceof IncompleteArchive
  if (isCut && manifest) return incomplete(file, error)
  return manifest
    ? damaged(file, error)
    : new BackupError(`${file} is not a backup of Usher, or its beginning is damaged.`, { cause: error })
}

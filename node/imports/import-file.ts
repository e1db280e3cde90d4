import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { allowPauses, refusalOf } from '../../db/driver/postgres.ts'
import {
  beginImport, findImport, lockImport, updateImport, type ImportProgress,
} from '../../db/users/user-imports.ts'
import type { Database } from '../../db/tables/index.ts'
import { MAX_LINE_BYTES, readLines } from './lines.ts'
import { contentOf, RejectedLine, type LineParser } from './parse-line.ts'
import { RejectedLines } from './rejected-lines.ts'

// How many lines a transaction has at most.
const BATCH_LINES = 1000

// How many problems a check without an import returns.
const MAX_PROBLEMS = 20

export interface ImportOptions {
  readonly db: Database
  readonly path: string
  readonly rejectedPath: string
  /** Whether nothing is written: neither what the lines have nor rejected lines. */
  readonly dryRun?: boolean
  /** Whether a file is imported once more that was imported. */
  readonly again?: boolean
  /** Receives how much of the file is done, in bytes. */
  readonly onProgress?: (done: number, total: number) => void
}

export interface ImportResult {
  /**
   * How many lines were imported and how many were rejected, by all runs, and what the importer counts of those that
   * were imported.
   */
  readonly imported: number
  readonly rejected: number
  readonly counted: number
  /** How many lines an earlier run of the same file has imported. */
  readonly resumed: number
  /** When the file was imported, if that was done before. */
  readonly finishedAt: Date | null
  /** What is wrong with the first rejected lines. Only for `dryRun`. */
  readonly problems: readonly { readonly line: number, readonly reason: string }[]
}

/** What the lines of a file are, and how they are imported. */
export interface Importer<Parsed> {
  /** The member of a rejected line that has what was given, such as `user`. */
  readonly member: string
  /** What tells the import of a file from that of the same file as something else; nothing for users. */
  readonly task?: string
  /** The size of the lines of a transaction: it takes a fraction of a second, so that nothing waits for its locks. */
  readonly batchBytes: number
  /** Reads a line. Throws `RejectedLine`. */
  readonly parse: LineParser<Parsed>
  /**
   * Stores what lines have, in a transaction. Returns undefined for each line that was imported, in the same order, and
   * otherwise why it was not.
   */
  store (trx: Database, lines: readonly Parsed[]): Promise<(string | undefined)[]>
  /** Prepares a transaction in which a whole file is checked. */
  beginCheck (trx: Database): Promise<void>
  /** Does what `store` does, but imports nothing. */
  check (trx: Database, lines: readonly Parsed[]): Promise<(string | undefined)[]>
  /** Returns what an imported line adds to `counted`. */
  count (line: Parsed): number
}

/** A line of a batch: what it has, or why it is rejected. */
interface Item<Parsed> {
  readonly line: number
  /** The byte of the file at which the next line begins. */
  readonly end: number
  readonly bytes: Buffer | undefined
  readonly parsed?: Parsed | undefined
  readonly reason?: string | undefined
}

/**
 * Imports a file, in constant memory and in transactions of some of its lines, each of which also stores how far it is.
 * So an interrupted import continues there when it is run again. Lines that are not imported are written to another
 * file. Throws an `Error` with a sentence.
 */
export async function importFile<Parsed> (importer: Importer<Parsed>, given: ImportOptions): Promise<ImportResult> {
  const { db, path, dryRun = false } = given
  const { size, hash: content } = await describeFile(path)
  const hash = importer.task === undefined ? content : taskOf(importer.task, content)
  if (dryRun) {
    return db.transaction().execute(async (trx) => {
      await importer.beginCheck(trx)
      return run(importer, given, { size, hash }, none, new RejectedLines(given.rejectedPath, 0), trx)
    })
  }
  const stored = given.again ? undefined : await findImport(db, hash)
  if (stored?.finishedAt) return { ...stored, resumed: stored.imported, problems: [] }
  const rejectedLines = new RejectedLines(given.rejectedPath, stored?.rejectedBytes ?? 0)
  if (!stored) {
    await rejectedLines.requireAbsent()
    await beginImport(db, hash)
  }
  try {
    return await run(importer, given, { size, hash }, stored ?? none, rejectedLines)
  } finally {
    await rejectedLines.close()
  }
}

const none: ImportProgress = { position: 0, line: 0, imported: 0, counted: 0, rejected: 0, rejectedBytes: 0 }

async function run<Parsed> (
  importer: Importer<Parsed>, { db, path, onProgress }: ImportOptions, file: { size: number, hash: Buffer },
  { ...progress }: ImportProgress, rejectedLines: RejectedLines, dryRun?: Database
): Promise<ImportResult> {
  const resumed = progress.imported
  const problems: ImportResult['problems'][number][] = []
  let items: Item<Parsed>[] = []
  let bytes = 0

  async function flush (isLast: boolean): Promise<void> {
    if (dryRun) count(items, await importer.check(dryRun, parsedOf(items)))
    else await store(items, isLast)
    onProgress?.(progress.position, file.size);
    [items, bytes] = [[], 0]
  }

  // Imports a batch. If PostgreSQL refuses it, for example by a constraint of the host, its halves are imported, and
  // the line that it refuses is rejected.
  async function store (batch: readonly Item<Parsed>[], isLast: boolean): Promise<void> {
    const before = { ...progress }
    try {
      return await db.transaction().execute((trx) => storeIn(trx, batch, isLast))
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === undefined || batch.every(({ parsed }) => !parsed)) throw error
      Object.assign(progress, before)
      // A constraint may be checked at the commit.
      await rejectedLines.rewind(before.rejectedBytes)
      if (batch.length === 1) {
        const { parsed, ...item } = batch[0]!
        return store([{ ...item, reason: `PostgreSQL refuses it: ${refusal}` }], isLast)
      }
      const half = Math.ceil(batch.length / 2)
      await store(batch.slice(0, half), false)
      await store(batch.slice(half), isLast)
    }
  }

  async function storeIn (trx: Database, batch: readonly Item<Parsed>[], isLast: boolean): Promise<void> {
    // Writing rejected lines to a slow disk may take long, and delays nobody else.
    await allowPauses(trx)
    if (!await lockImport(trx, file.hash, progress.position)) throw new Error('Another process imports the same file.')
    const rejected = count(batch, await importer.store(trx, parsedOf(batch)))
    await rejectedLines.append(rejected.map((item) => toText(item, importer.member)))
    progress.rejectedBytes = rejectedLines.size
    await updateImport(trx, file.hash, progress, isLast)
  }

  // Counts a batch. Returns the lines that are rejected.
  function count (batch: readonly Item<Parsed>[], reasons: readonly (string | undefined)[]): Item<Parsed>[] {
    let place = 0
    const checked = batch.map((item) => {
      const reason = item.parsed && reasons[place++]
      return reason === undefined ? item : { ...item, reason }
    })
    const rejected = checked.filter(({ reason }) => reason !== undefined)
    const imported = parsedOf(checked.filter(({ reason }) => reason === undefined))
    progress.imported += imported.length
    progress.counted += imported.reduce((sum, line) => sum + importer.count(line), 0)
    progress.rejected += rejected.length
    for (const { line, reason = '' } of rejected) if (problems.length < MAX_PROBLEMS) problems.push({ line, reason })
    const { end: position, line } = batch.at(-1) ?? { end: progress.position, line: progress.line }
    Object.assign(progress, { position, line })
    return rejected
  }

  let read = progress.position
  for await (const { number: line, end, bytes: given } of readLines(path, progress)) {
    const item = { line, end, bytes: given }
    try {
      if (!given) throw new RejectedLine(`The line has more than ${MAX_LINE_BYTES} bytes`)
      items.push({ ...item, parsed: importer.parse(given) })
    } catch (error) {
      if (!(error instanceof RejectedLine)) throw error
      items.push({ ...item, reason: error.message })
    }
    read = end
    bytes += given?.length ?? 0
    if (items.length >= BATCH_LINES || bytes >= importer.batchBytes) await flush(false)
  }
  if (read !== file.size) throw new Error(`${path} has changed while it was read: import it again.`)
  await flush(true)
  const { imported, counted, rejected } = progress
  return { imported, counted, rejected, resumed, finishedAt: null, problems: dryRun ? problems : [] }
}

const toText = ({ line, reason, bytes }: Item<unknown>, member: string): string =>
  `{"line":${line},"reason":${JSON.stringify(reason)}${bytes ? `,${contentOf(bytes, member)}` : ''}}`

const parsedOf = <Parsed>(items: readonly Item<Parsed>[]): Parsed[] => items.flatMap(({ parsed }) => parsed ?? [])

/** Returns what identifies a task with a file among those that are remembered. */
export const taskOf = (task: string, content: Buffer): Buffer =>
  createHash('sha256').update(`${task}\n`).update(content).digest()

/** Returns the size of a file and the hash of its content. Throws an `Error` with a sentence. */
export async function describeFile (path: string): Promise<{ size: number, hash: Buffer }> {
  try {
    const stats = await stat(path)
    if (!stats.isFile()) throw Object.assign(new Error('not a file'), { code: 'not a regular file' })
    const hash = createHash('sha256')
    let size = 0
    for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
      hash.update(chunk as Buffer)
      size += (chunk as Buffer).length
    }
    return { size, hash: hash.digest() }
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`, { cause: error })
  }
}

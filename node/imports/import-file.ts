import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import {
  insertPasswordKinds, listPasswordKinds, openSignerKey, sealSignerKey, type PasswordKind,
} from '../../db/sign-in/password-kinds.ts'
import { allowPauses, refusalOf } from '../../db/driver/postgres.ts'
import type { Database } from '../../db/tables/index.ts'
import {
  checkUsers, createSeenUsers, importUsers, type ImportConflict, type ImportedUser,
} from '../../db/users/import-users.ts'
import {
  beginImport, findImport, lockImport, updateImport, type ImportProgress,
} from '../../db/users/user-imports.ts'
import { kindOfNewHashes } from '../../plugins/sign-in/passwords/passwords.ts'
import { impossibleHash, IMPORT_LIMITS, workOf, type HashLimits, type StoredHash } from '../../schema/sign-in/passwords/stored-hash.ts'
import type { Options } from '../../schema/options/options.ts'
import { noRoles } from '../../schema/options/roles.ts'
import type { UserFields } from '../../schema/users/user-fields.ts'
import { terminalContext } from '../commands/audit.ts'
import type { FirebaseConfig } from './firebase-config.ts'
import { MAX_LINE_BYTES, readLines } from './lines.ts'
import { contentOf, createUserParser, RejectedLine, type ParsedUser } from './parse-user.ts'
import { RejectedLines } from './rejected-lines.ts'

// A transaction of so many users takes a fraction of a second, so that nothing waits long for its locks.
const BATCH_LINES = 1000
const BATCH_BYTES = 4 * 1024 * 1024

/** How many kinds of hashes there may be. Every failed login takes the work of all of them. */
export const MAX_KINDS = 10

// How many problems a check without an import returns.
const MAX_PROBLEMS = 20

export interface ImportOptions {
  readonly db: Database
  readonly options: Pick<Options, 'passwordHash' | 'secret' | 'formerSecret'> & Partial<Pick<Options, 'roles'>>
  readonly fields: UserFields
  readonly path: string
  readonly rejectedPath: string
  readonly firebase?: FirebaseConfig | undefined
  /** Whether nothing is written: neither users nor rejected lines. */
  readonly dryRun?: boolean
  /** Whether a file is imported once more that was imported. */
  readonly again?: boolean
  /** Receives how much of the file is done, in bytes. */
  readonly onProgress?: (done: number, total: number) => void
}

export interface ImportResult {
  /** How many users were imported, of which how many are admins, and how many lines were rejected: by all runs. */
  readonly imported: number
  readonly admins: number
  readonly rejected: number
  /** How many users an earlier run of the same file has imported. */
  readonly resumed: number
  /** When the file was imported, if that was done before. */
  readonly finishedAt: Date | null
  /** What is wrong with the first rejected lines. Only for `dryRun`. */
  readonly problems: readonly { readonly line: number, readonly reason: string }[]
}

const reasons: Readonly<Record<ImportConflict, string>> = {
  email: 'email is the address of a user, or of an earlier line',
  id: 'id is that of a user, or of an earlier line',
  deleted: 'id is that of a user who is being deleted: try again in a minute',
  field: 'a value that must be unique is that of another user',
}

/** A line of a batch: a user, or why it is rejected. */
interface Item {
  readonly line: number
  /** The byte of the file at which the next line begins. */
  readonly end: number
  readonly bytes: Buffer | undefined
  readonly parsed?: ParsedUser | undefined
  readonly reason?: string | undefined
}

/**
 * Imports the users of a file, in constant memory and in transactions of some of its lines, each of which also stores
 * how far it is. So an interrupted import continues there when it is run again. Lines that are not imported are written
 * to another file. Throws an `Error` with a sentence.
 */
export async function importFile (given: ImportOptions): Promise<ImportResult> {
  const { db, path, dryRun = false } = given
  const { size, hash } = await describeFile(path)
  if (dryRun) {
    return db.transaction().execute(async (trx) => {
      await createSeenUsers(trx)
      return run(given, { size, hash }, none, new RejectedLines(given.rejectedPath, 0), trx)
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
    return await run(given, { size, hash }, stored ?? none, rejectedLines)
  } finally {
    await rejectedLines.close()
  }
}

const none: ImportProgress = { position: 0, line: 0, imported: 0, admins: 0, rejected: 0, rejectedBytes: 0 }

async function run (
  { db, options, fields, path, firebase, onProgress }: ImportOptions, file: { size: number, hash: Buffer },
  { ...progress }: ImportProgress, rejectedLines: RejectedLines, dryRun?: Database
): Promise<ImportResult> {
  const resumed = progress.imported
  const problems: ImportResult['problems'][number][] = []
  const { roles = noRoles } = options
  const parse = createUserParser({ fields, roles, limits: limitsOf(options), firebase, now: Date.now() })
  const kinds = await createKinds(db, options, firebase)
  let items: Item[] = []
  let bytes = 0

  async function flush (isLast: boolean): Promise<void> {
    if (dryRun) count(items, await checkUsers(dryRun, usersOf(items)))
    else await store(items, isLast)
    onProgress?.(progress.position, file.size);
    [items, bytes] = [[], 0]
  }

  // Imports a batch. If PostgreSQL refuses it, for example by a constraint of the host, its halves are imported, and
  // the user that it refuses is rejected.
  async function store (batch: readonly Item[], isLast: boolean): Promise<void> {
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
        return store([{ ...item, reason: `PostgreSQL refuses the user: ${refusal}` }], isLast)
      }
      const half = Math.ceil(batch.length / 2)
      await store(batch.slice(0, half), false)
      await store(batch.slice(half), isLast)
    }
  }

  async function storeIn (trx: Database, batch: readonly Item[], isLast: boolean): Promise<void> {
    // Writing rejected lines to a slow disk may take long, and delays nobody else.
    await allowPauses(trx)
    if (!await lockImport(trx, file.hash, progress.position)) throw new Error('Another process imports the same file.')
    await insertPasswordKinds(trx, kinds.toStore(batch))
    const rejected = count(batch, await importUsers(trx, usersOf(batch), terminalContext, fields))
    await rejectedLines.append(rejected.map(toText))
    progress.rejectedBytes = rejectedLines.size
    await updateImport(trx, file.hash, progress, isLast)
  }

  // Counts a batch. Returns the lines that are rejected.
  function count (batch: readonly Item[], conflicts: readonly (ImportConflict | undefined)[]): Item[] {
    let place = 0
    const checked = batch.map((item) => {
      const conflict = item.parsed && conflicts[place++]
      return conflict ? { ...item, reason: reasons[conflict] } : item
    })
    const rejected = checked.filter(({ reason }) => reason !== undefined)
    const imported = usersOf(checked.filter(({ reason }) => reason === undefined))
    progress.imported += imported.length
    progress.admins += imported.filter(({ role }) => role === 'admin').length
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
      const parsed = parse(given)
      kinds.admit(parsed?.hash)
      items.push({ ...item, parsed })
    } catch (error) {
      if (!(error instanceof RejectedLine)) throw error
      items.push({ ...item, reason: error.message })
    }
    read = end
    bytes += given?.length ?? 0
    if (items.length >= BATCH_LINES || bytes >= BATCH_BYTES) await flush(false)
  }
  if (read !== file.size) throw new Error(`${path} has changed while it was read: import it again.`)
  await flush(true)
  const { imported, admins, rejected } = progress
  return { imported, admins, rejected, resumed, finishedAt: null, problems: dryRun ? problems : [] }
}

const toText = ({ line, reason, bytes }: Item): string =>
  `{"line":${line},"reason":${JSON.stringify(reason)}${bytes ? `,${contentOf(bytes)}` : ''}}`

const usersOf = (items: readonly Item[]): ImportedUser[] => items.flatMap(({ parsed }) => parsed?.user ?? [])

// A cost that is usual here is no attack.
function limitsOf ({ passwordHash: { memoryKiB, passes } }: Pick<Options, 'passwordHash'>): HashLimits {
  const { argon2 } = IMPORT_LIMITS
  return {
    argon2: {
      memoryKiB: Math.max(argon2.memoryKiB, memoryKiB),
      passes: Math.max(argon2.passes, passes),
      memoryTimesPasses: Math.max(argon2.memoryTimesPasses, memoryKiB * passes),
    },
  }
}

// The kinds of hashes that there are, and those that a file adds.
async function createKinds (
  db: Database, options: ImportOptions['options'], firebase: FirebaseConfig | undefined
) {
  const own = kindOfNewHashes(options.passwordHash)
  const stored = new Map((await listPasswordKinds(db)).map((kind) => [kind.kind, kind]))
  const groupOf = (hash: StoredHash) => workOf(hash).group
  const groups = new Set([own, ...stored.keys()].map((kind) => groupOf(impossibleHash(kind))))
  const sealed = new Map<string, PasswordKind>()
  const opened = new Map<string, Buffer>()

  // The key is stored anew where it is given, since the one that is stored may need a secret that is lost.
  function kindOf ({ kind }: StoredHash, keyId: string | undefined): PasswordKind {
    const isGiven = keyId !== undefined && keyId === firebase?.keyId
    const known = sealed.get(kind) ?? (isGiven ? undefined : stored.get(kind))
    if (known) return known
    const added = { kind, signerKey: isGiven ? sealSignerKey(options, kind, firebase!.signerKey) : null }
    sealed.set(kind, added)
    return added
  }

  // A hash of Firebase is the encrypted signer key, so it has its length.
  function signerKeyOf ({ kind }: StoredHash, keyId: string): Buffer | undefined {
    if (keyId === firebase?.keyId) return firebase.signerKey
    const sealedKey = stored.get(kind)?.signerKey
    if (sealedKey == null) return undefined
    const known = opened.get(kind) ?? openSignerKey(options, kind, sealedKey)
    opened.set(kind, known)
    return known
  }

  return {
    /** Throws `RejectedLine` if a hash could not be checked without another key, or if it is of one kind too many. */
    admit (hash: StoredHash | undefined): void {
      if (!hash) return
      const keyId = keyIdOf(hash)
      if (keyId !== undefined && keyId !== firebase?.keyId && !stored.has(hash.kind)) {
        throw new RejectedLine('passwordHash is of a Firebase project whose parameters --firebase-config does not give')
      }
      const bytes = keyId === undefined ? undefined : signerKeyOf(hash, keyId)?.length
      if (hash.family === 'scrypt' && bytes !== undefined && hash.hash.length !== bytes) {
        throw new RejectedLine(
          `passwordHash has a hash of ${hash.hash.length} bytes: the signer key of its Firebase project has ${bytes}`
        )
      }
      const group = groupOf(hash)
      if (!groups.has(group) && groups.size >= MAX_KINDS) {
        throw new RejectedLine(`passwordHash is of one kind more than the ${MAX_KINDS} that there may be`)
      }
      groups.add(group)
    },

    /** Returns the kinds of the hashes of users, without the one of this installation. */
    toStore: (items: readonly Item[]): PasswordKind[] => {
      const all = items.flatMap(({ parsed }) =>
        parsed?.hash && parsed.hash.kind !== own ? [kindOf(parsed.hash, keyIdOf(parsed.hash))] : [])
      return [...new Map(all.map((kind) => [kind.kind, kind])).values()]
    },
  }
}

const keyIdOf = (hash: StoredHash): string | undefined =>
  hash.family === 'scrypt' ? hash.firebase?.keyId : undefined

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

import { stat } from 'node:fs/promises'
import { explainStart } from '../../db/driver/start-errors.ts'
import type { StorageBackend } from '../../plugins/uploads/backend.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { BackupError, describeBytes, describeCount } from '../backup/format.ts'
import { inspectDestination, restoreBackup, verifyBackup, type Destination } from '../backup/restore.ts'
import { describeUndone } from '../backup/undone.ts'
import { explain, hasDatabase } from '../data.ts'
import { schemaOf } from '../settings/service-options.ts'
import { readEnvironment } from '../settings/environment.ts'
import { explainFailure, openStorage } from '../storage.ts'
import { showProgress } from '../terminal/progress.ts'
import type { Shell } from '../terminal/shell.ts'
import type { Settings } from '../settings/settings.ts'
import { openCommandData } from './command-data.ts'
import { confirm } from './confirm.ts'
import { requireAnswer } from '../wait-for-database.ts'
import type { Command, Output } from './command.ts'

interface RestoreOptions {
  schema?: string | undefined
  uploads?: string | undefined
  replaces: boolean
  yes: boolean
  keepsSessions: boolean
}

export default {
  details: 'Stop all nodes first. The file is verified before anything changes, and the database changes in one step. A backup of an\n' +
    'older release is migrated. All sessions end: users have to log in again.\n\n' +
    '  --replace              replace a database that is not empty. Files of uploads that are not in the backup stay\n' +
    '  --yes                  do not ask for confirmation\n' +
    '  --keep-sessions        restore sessions and signing keys. Sessions that have ended since the backup are live again. Needs the\n' +
    '                         SECRET of the backup\n' +
    '  --schema <name>        the PostgreSQL schema, by default usher\n' +
    '  --uploads-dir <folder> the folder of the uploads, by default DATA_DIR/uploads. With S3_BUCKET, they are written to the\n' +
    '                         bucket, unless UPLOADS_TO is folder',
  arguments: ['FILE'],
  json: '{ file, rows: number, files: number, missing: number, release, createdAt, undone: [{ action, userId, at }] or null }',
  options: {
    replace: { type: 'boolean' },
    yes: { type: 'boolean' },
    'keep-sessions': { type: 'boolean' },
    schema: { type: 'string' },
    'uploads-dir': { type: 'string' },
  },
  run: async ({ replace, yes, 'keep-sessions': keepsSessions, schema, 'uploads-dir': uploads }, [file = ''], shell) =>
    restore(shell, shell.resolve(file), {
      schema: schema as string | undefined,
      uploads: uploads as string | undefined,
      replaces: replace === true,
      yes: yes === true,
      keepsSessions: keepsSessions === true,
    }),
} satisfies Command

async function restore (
  shell: Shell, file: string, { schema: name, uploads, replaces, yes, keepsSessions }: RestoreOptions
): Promise<Output> {
  const settings = await readEnvironment(shell)
  const { schema } = readOptions(schemaOf(settings, name))
  const backend = await openStorage(settings, uploads)
  const total = await stat(file).then(({ size }) => size, () => 0)
  await refuseEarly(shell, settings, { schema, backend, confirm: replaces ? async () => {} : refuse })
  const verified = await withProgress(shell, 'Verifying', total, (onBytes) => verifyBackup(file, onBytes))
  // An embedded database is created only now.
  await requireAnswer(settings)
  const data = await openCommandData(settings, shell)
  try {
    const { rows, files, missing, undone } = await withProgress(shell, 'Restoring', total, (onBytes) => restoreBackup({
      file,
      database: settings.NOTIFICATIONS_URL ?? data.url,
      schema,
      backend,
      keepsSessions,
      secret: data.secret,
      onBytes,

      async confirm (existing) {
        if (!replaces) await refuse(existing)
        if (!yes && !await confirm(shell, `Replace ${existing}?`)) throw new BackupError('Nothing was changed.')
      },
    }, verified))
    const { release, createdAt } = verified.manifest
    if (missing > 0) shell.messages.print(`${missing} uploads have no file: it was missing when the backup was made.`)
    const said = describeUndone(undone ?? [])
    if (said !== '') shell.messages.print(said)
    return {
      text: `${rows} rows were restored, and ${describeCount(files, 'file')} to ${backend.root}, as of ${createdAt} (release ${release}). ` +
        (keepsSessions ? 'Sessions that have ended since then are live again.' : 'Rows of sessions and keys were left out: all sessions have ended.') +
        (undone ? '' : ' Passkeys, identities, passwords and recovery codes are those of that moment, also those that were removed or used since.'),
      json: { file, rows, files, missing, release, createdAt, undone: undone ?? null },
    }
  } catch (error) {
    if (error instanceof BackupError) throw error
    const why = explainRestore(error as Error, schema, backend)
    throw new Error(why ?? explain(explainStart(error as Error, schema), settings), { cause: error })
  } finally {
    await data.stop()
  }
}

// Verifying a large backup takes long, so what would be refused afterwards is refused before.
async function refuseEarly (
  shell: Shell, settings: Settings, destination: Pick<Destination, 'schema' | 'backend' | 'confirm'>
): Promise<void> {
  // An embedded database that does not exist is not created for a backup that may be damaged.
  if (!hasDatabase(settings)) return inspectDestination(destination)
  await requireAnswer(settings)
  const { url, stop } = await openCommandData(settings, shell)
  try {
    await inspectDestination({ database: settings.NOTIFICATIONS_URL ?? url, ...destination })
  } catch (error) {
    if (error instanceof BackupError) throw error
    throw new Error(explain(explainStart(error as Error, destination.schema), settings), { cause: error })
  } finally {
    await stop()
  }
}

async function refuse (existing: string): Promise<void> {
  throw new BackupError(`There is ${existing} already: ` +
    'repeat the command with --replace to replace it, or restore into another database and folder.')
}

async function withProgress<T> (
  { messages }: Shell, label: string, total: number, work: (onBytes: (done: number) => void) => Promise<T>
): Promise<T> {
  const progress = showProgress(messages, label, describeBytes)
  try {
    return await work((done) => progress.update(done, total))
  } finally {
    progress.end()
  }
}

function explainRestore (error: Error, schema: string, backend: StorageBackend): string | undefined {
  const ofStorage = explainFailure(error, backend)
  if (ofStorage) return `${ofStorage} Nothing was changed.`
  const { code } = error as { code?: string }
  if (code === '53100') return 'The database has no space left: free some. Nothing was changed.'
  if (code === '55P03') {
    return `Another program has locked tables of the schema "${schema}": stop all nodes and other commands first. Nothing was changed.`
  }
}

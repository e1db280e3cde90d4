import { existsSync } from 'node:fs'
import { explainStart } from '../../db/driver/start-errors.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { compress, writeArchive } from '../backup/archive.ts'
import { makeBackup, type Result } from '../backup/backup.ts'
import { BackupError, describeBytes, describeCount } from '../backup/format.ts'
import { explain, requireDatabase } from '../data.ts'
import { schemaOf } from '../settings/service-options.ts'
import { readEnvironment } from '../settings/environment.ts'
import { explainFailure, openStorage } from '../storage.ts'
import { showProgress } from '../terminal/progress.ts'
import type { Shell } from '../terminal/shell.ts'
import { requireAnswer } from '../wait-for-database.ts'
import { openCommandData } from './command-data.ts'
import type { Command, Output } from './command.ts'

export default {
  details: 'Nodes may run meanwhile. The file is a compressed tar archive with all data of one moment, and it is complete as soon as it\n' +
    'has its name. FILE may be - for standard output. The file contains personal data, password hashes and encrypted keys.\n' +
    'SECRET is not in it: keep DATA_DIR/secret or SECRET elsewhere.\n\n' +
    '  --schema <name>        the PostgreSQL schema, by default usher\n' +
    '  --uploads-dir <folder> the folder of the uploads, by default DATA_DIR/uploads. With S3_BUCKET, uploads are in the\n' +
    '                         bucket as well',
  arguments: ['FILE'],
  json: '{ file, rows: number, files: number, bytes: number, size: number, missing: number, missingIds: [string] }',
  options: { schema: { type: 'string' }, 'uploads-dir': { type: 'string' } },
  run: async ({ schema, 'uploads-dir': uploads }, [file = ''], shell) =>
    backup(shell, file, schema as string | undefined, uploads as string | undefined),
} satisfies Command

async function backup (shell: Shell, file: string, schemaName?: string, uploads?: string): Promise<Output | void> {
  const { messages, stdout } = shell
  const settings = await readEnvironment(shell)
  const path = shell.resolve(file)
  if (file !== '-' && existsSync(path)) throw new Error(`${path} exists: choose another name.`)
  if (file === '-' && stdout.isTTY) {
    throw new Error('A backup is not written to a terminal: redirect the output, or name a file.')
  }
  requireDatabase(settings)
  const { schema } = readOptions(schemaOf(settings, schemaName))
  const backend = await openStorage(settings, uploads)
  await requireAnswer(settings)
  const data = await openCommandData(settings, shell)
  const progress = showProgress(messages, 'Backing up', describeBytes)
  const began = performance.now()
  let size = 0
  try {
    const source = { database: settings.NOTIFICATIONS_URL ?? data.url, schema, backend }
    const result = await makeBackup(source, async (bytes) => {
      const update = (total: number) => progress.update(total)
      size = file === '-' ? await compress(bytes, stdout, update) : await writeArchive(path, bytes, update)
    })
    progress.end()
    if (result.missing > 0) messages.print(describeMissing(result))
    const output = report(result, backend.root, file === '-' ? 'standard output' : path, size, (performance.now() - began) / 1000)
    if (file !== '-') return output
    // Standard output has the backup. A signal may arrive when it is just complete; the exit code then says that it may
    // not be.
    if (!shell.isInterrupted) messages.print(output.text)
  } catch (error) {
    progress.end()
    // Its cause may be an error of the file system, which is not the fault of the database.
    if (error instanceof BackupError) throw error
    const why = explainFailure(error, backend) ?? explain(explainStart(error as Error, schema), settings)
    throw new Error(why, { cause: error })
  } finally {
    await data.stop()
  }
}

const describeMissing = ({ missing, missingIds }: Result) =>
  `The bytes of ${missing} uploads are missing or differ from their records: ${missingIds.join(', ')}${missing > missingIds.length ? ', …' : ''}`

function report (
  { rows, files, fileBytes, missing, missingIds }: Result, from: string, file: string, size: number, seconds: number
): Output {
  const count = Object.values(rows).reduce((sum, number) => sum + number, 0)
  return {
    text: `${count} rows and ${describeCount(files, 'file')} (${describeBytes(fileBytes)}) of ${from} are in ${file}: ${describeBytes(size)}, ${seconds.toFixed(1)} seconds.`,
    json: { file, rows: count, files, bytes: fileBytes, size, missing, missingIds },
  }
}

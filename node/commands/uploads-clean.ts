import { installationOf, listUnrecorded } from '../../db/uploads/uploads.ts'
import type { Database } from '../../db/tables/index.ts'
import type { StorageBackend, StoredBytes } from '../../plugins/uploads/backend.ts'
import { listStrayFiles, STRAY_AFTER_MS } from '../../plugins/uploads/stray-files.ts'
import { openStorage, settingsOfStorage } from '../storage.ts'
import { confirm } from './confirm.ts'
import { withDatabase } from './with-database.ts'
import { WrongArguments, type Command } from './command.ts'

export default {
  details: '  --dry-run                 only count them\n' +
    '  --yes                     do not ask for confirmation\n' +
    '  --older-than <seconds>    the age of the files, by default 3600. 0 only while no node runs\n' +
    '  --ignore-other-databases  proceed even if other databases have used the folder: their files are removed, too\n\n' +
    'If you have restored a backup of the database, the files that were uploaded since that backup have no record. If you\n' +
    'remove them, they are missing when you restore a newer backup. With --older-than, what interrupted uploads have left is\n' +
    'removed as well.',
  json: '{ location, files: number, bytes: number, removed: number }',
  options: {
    'dry-run': { type: 'boolean' },
    yes: { type: 'boolean' },
    'older-than': { type: 'string' },
    'ignore-other-databases': { type: 'boolean' }
  },

  run: ({ 'dry-run': isDry, yes, 'older-than': age, 'ignore-other-databases': ignoresOthers }, _, shell) => withDatabase(shell, async ({
    db, options, settings,
  }) => {
    const forMs = ageOf(age)
    const backend = await openStorage(settings)
    if (!await backend.exists()) throw new Error(`There are no uploads in ${backend.root}: check ${settingsOfStorage(settings)}.`)
    if (!ignoresOthers && await backend.isShared(await installationOf(db, options.schema))) {
      throw new Error(`Other databases have used ${backend.root}, and files may belong to them: ` +
        'repeat the command with --ignore-other-databases if they are not needed.')
    }
    const strays = await collect(db, backend, forMs)
    if (age !== undefined && !isDry && yes) await removeInterrupted(backend, forMs)
    const bytes = strays.reduce((sum, { size }) => sum + size, 0)
    const found = `${count(strays.length)} without a record in ${backend.location}, ${bytes} bytes.`
    const json = { location: backend.location, files: strays.length, bytes, removed: 0 }
    if (isDry || strays.length === 0) return { text: found, json }
    if (!yes) shell.messages.print(found)
    const isConfirmed = yes || await confirm(shell, `Remove ${count(strays.length)}?`)
    const removed = isConfirmed ? await removeAll(db, backend, strays) : 0
    return { text: `${yes ? `${found}\n` : ''}${count(removed)} removed.`, json: { ...json, removed } }
  }),
} satisfies Command

const count = (files: number) => `${files} file${files === 1 ? '' : 's'}`

// Returns milliseconds. Files that were just stored may seem to be of the future, because times have whole seconds.
function ageOf (text: unknown): number {
  if (text === undefined) return STRAY_AFTER_MS
  if (typeof text !== 'string' || !/^\d{1,9}$/.test(text)) {
    throw new WrongArguments('--older-than must be a whole number of seconds')
  }
  return text === '0' ? -Infinity : Number(text) * 1000
}

// What uploads have written that were neither completed nor discarded, because their node was killed.
async function removeInterrupted (backend: StorageBackend, forMs: number): Promise<void> {
  for await (const batch of backend.listOld('temporary', forMs, new AbortController().signal)) {
    await Promise.all(batch.map(({ id }) => backend.remove('temporary', id)))
  }
}

async function collect (db: Database, backend: StorageBackend, forMs: number): Promise<StoredBytes[]> {
  const strays: StoredBytes[] = []
  for await (const batch of listStrayFiles(db, backend, new AbortController().signal, forMs)) strays.push(...batch)
  return strays
}

// Checks again right before each batch, because a database may have been restored before the question was answered.
async function removeAll (db: Database, backend: StorageBackend, strays: readonly StoredBytes[]): Promise<number> {
  let removed = 0
  for (let start = 0; start < strays.length; start += 100) {
    const ids = await listUnrecorded(db, strays.slice(start, start + 100).map(({ id }) => id))
    await Promise.all(ids.map((id) => backend.remove('published', id)))
    removed += ids.length
  }
  return removed
}

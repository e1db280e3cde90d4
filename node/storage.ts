import type { StorageBackend } from '../plugins/uploads/backend.ts'
import { closeBackends, joinBackends, openBackends, type Backends } from '../plugins/uploads/open-backend.ts'
import { multiplyDeadlines, type Deadlines } from '../schema/options/deadlines.ts'
import { readOptions } from '../schema/options/read-options.ts'
import { StorageFailed, StorageFull, StorageUnavailable } from '../schema/uploads/upload.ts'
import { explain } from './data.ts'
import { givenStores, pathIn, storageOf } from './settings/service-options.ts'
import type { Settings } from './settings/settings.ts'
import { settingsOfStore } from './settings/stores.ts'

/**
 * Returns the storage of uploads that the settings select, for commands. Throws an `Error` with a sentence that names
 * the setting if a store cannot be used.
 * @param folder is used in place of the folder of the settings
 */
export async function openStorage (settings: Settings, folder?: string): Promise<StorageBackend> {
  const options = optionsOf(settings, { folder })
  const backends = await openBackends(options)
  await requireStore(backends, settings)
  return joinBackends(backends, options)
}

/**
 * Returns the folder and the stores of the settings.
 * @param deadlines replace those of the options
 */
export function openStorages (settings: Settings, deadlines?: Partial<Deadlines>): Promise<Backends> {
  return openBackends(optionsOf(settings, { deadlines }))
}

/** Returns a sentence that names the setting if the settings have a store that cannot be used. */
export async function explainStorage (settings: Settings): Promise<string | undefined> {
  const backends = await openStorages(settings)
  try {
    await requireStore(backends, settings)
  } catch (error) {
    return (error as Error).message
  } finally {
    closeBackends(backends)
  }
}

// The folder is checked where it is used.
async function requireStore (backends: Backends, settings: Settings): Promise<void> {
  try {
    for (const [name, backend] of backends) if (name !== 'folder') await backend.check()
  } catch (error) {
    closeBackends(backends)
    throw new Error(`${explain(error as Error, settings)}.`, { cause: error })
  }
}

/** Returns a sentence for an error of the storage, or undefined for another one. */
export function explainFailure (error: unknown, backend: StorageBackend): string | undefined {
  const { root } = backend
  const { why, advice } = backend.explain(((error as Error).cause ?? error) as NodeJS.ErrnoException)
  if (error instanceof StorageFull) return `The uploads cannot be written to ${root} (${why}): free some space.`
  if (error instanceof StorageFailed) return `The uploads cannot be written to ${root} (${why}): ${advice}.`
  if (error instanceof StorageUnavailable) return `The uploads cannot be read from ${root} (${why}): ${advice}.`
}

function optionsOf (
  settings: Settings, { folder, deadlines }: { folder?: string | undefined, deadlines?: Partial<Deadlines> | undefined }
) {
  const storage = storageOf(settings)
  return readOptions({
    ...storage,
    ...folder !== undefined && { uploadsDir: pathIn(settings, folder) },
    deadlines: { ...multiplyDeadlines(settings.DEADLINE_FACTOR), ...deadlines },
    // It is not used.
    databaseUrl: 'postgres://localhost/usher',
  })
}

/** Returns the settings that say where uploads are, for a message. */
export function settingsOfStorage (settings: Settings): string {
  const ofStores = givenStores(settings).flatMap(settingsOfStore)
  return ofStores.length > 0 ? `DATA_DIR, ${ofStores.join(', ')}` : 'DATA_DIR'
}

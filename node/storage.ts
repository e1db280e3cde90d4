import { resolve } from 'node:path'
import type { StorageBackend } from '../plugins/uploads/backend.ts'
import { openBackend, openBackends } from '../plugins/uploads/open-backend.ts'
import { multiplyDeadlines } from '../schema/options/deadlines.ts'
import { readOptions } from '../schema/options/read-options.ts'
import { storageOf } from './settings/service-options.ts'
import type { Settings } from './settings/settings.ts'

/**
 * Returns the storage of uploads that the settings select, for commands.
 * @param folder is used in place of what the settings select
 */
export function openStorage (settings: Settings, folder?: string): StorageBackend {
  return openBackend(optionsOf(settings, folder))
}

/** Returns the folder and the S3 of the settings; no `s3` if they have none. */
export function openStorages (settings: Settings): ReturnType<typeof openBackends> {
  return openBackends(optionsOf(settings))
}

function optionsOf (settings: Settings, folder?: string) {
  const storage = storageOf(settings)
  return readOptions({
    ...storage,
    ...folder !== undefined && { uploadsDir: resolve(folder), s3: undefined, uploadsTo: undefined },
    deadlines: multiplyDeadlines(settings.DEADLINE_FACTOR),
    // It is not used.
    databaseUrl: 'postgres://localhost/usher',
  })
}

/** Returns the settings that say where uploads are, for a message. */
export const settingsOfStorage = ({ S3_BUCKET }: Pick<Settings, 'S3_BUCKET'>): string =>
  S3_BUCKET ? 'S3_BUCKET, S3_PREFIX and DATA_DIR' : 'DATA_DIR'

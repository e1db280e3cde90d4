import type { Options } from '../../schema/options/options.ts'
import type { StorageBackend } from './backend.ts'
import { createFolder } from './folder.ts'

/** Returns the storage backend that the options select. It writes nothing before `claim` is called. */
export function openBackend ({ uploadsDir }: Pick<Options, 'uploadsDir'>): StorageBackend {
  return createFolder(uploadsDir)
}

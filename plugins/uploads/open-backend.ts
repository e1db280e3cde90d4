import type { Options } from '../../schema/options/options.ts'
import type { StorageName } from '../../schema/options/s3.ts'
import type { StorageBackend } from './backend.ts'
import { createFolder } from './folder.ts'
import { createMoving } from './moving.ts'
import { createS3, type S3BackendOptions } from './s3/index.ts'

type BackendOptions = Omit<S3BackendOptions, 's3'> & Pick<Options, 's3' | 'uploadsTo'>

/**
 * Returns the storage backend that the options select. It writes nothing before `claim` is called. With an S3 and a
 * folder that this database uses, bytes are read from either, so that they can be moved while nodes run.
 */
export function openBackend (options: BackendOptions): StorageBackend {
  const { folder, s3 } = openBackends(options)
  if (!s3) return folder
  return targetOf(options) === 's3' ? createMoving(s3, folder) : createMoving(folder, s3)
}

/** Returns both backends; no `s3` without that option. */
export function openBackends (
  { s3, ...options }: Omit<BackendOptions, 'uploadsTo'>
): { folder: StorageBackend, s3: StorageBackend | undefined } {
  return { folder: createFolder(options.uploadsDir), s3: s3 && createS3({ ...options, s3 }) }
}

/** Returns where new uploads are stored. */
export const targetOf = ({ s3, uploadsTo }: Pick<Options, 's3' | 'uploadsTo'>): StorageName =>
  uploadsTo ?? (s3 ? 's3' : 'folder')

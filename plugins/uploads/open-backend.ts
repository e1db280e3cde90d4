import type { Options } from '../../schema/options/options.ts'
import type { StorageName } from '../../schema/options/s3.ts'
import type { StorageBackend } from './backend.ts'
import { createFolder } from './folder.ts'
import type { S3BackendOptions } from './s3/index.ts'

type BackendOptions = Omit<S3BackendOptions, 's3'> & Pick<Options, 's3' | 'uploadsTo'>

/** The backends of the options; no `s3` without that option. */
export interface Backends { readonly folder: StorageBackend, readonly s3: StorageBackend | undefined }

/**
 * Returns the storage backend that the options select. It writes nothing before `claim` is called. With an S3 and a
 * folder that this database uses, bytes are read from either, so that they can be moved while nodes run.
 */
export async function openBackend (options: BackendOptions): Promise<StorageBackend> {
  return joinBackends(await openBackends(options), options)
}

/** Returns both backends. That of an S3 is only loaded with this option. */
export async function openBackends ({ s3, ...options }: Omit<BackendOptions, 'uploadsTo'>): Promise<Backends> {
  const folder = createFolder(options.uploadsDir)
  if (!s3) return { folder, s3: undefined }
  const { createS3 } = await import('./s3/index.ts')
  return { folder, s3: createS3({ ...options, s3 }) }
}

/** Returns the backend that stores where the options say, and reads what either of these has. */
export async function joinBackends (
  { folder, s3 }: Backends, options: Pick<Options, 's3' | 'uploadsTo'>
): Promise<StorageBackend> {
  if (!s3) return folder
  const { createMoving } = await import('./moving.ts')
  return targetOf(options) === 's3' ? createMoving(s3, folder) : createMoving(folder, s3)
}

/** Returns where new uploads are stored. */
export const targetOf = ({ s3, uploadsTo }: Pick<Options, 's3' | 'uploadsTo'>): StorageName =>
  uploadsTo ?? (s3 ? 's3' : 'folder')

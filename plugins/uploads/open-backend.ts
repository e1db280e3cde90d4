import type { Options } from '../../schema/options/options.ts'
import { storeNames, type StorageName, type StoreName, type StoreOptions } from '../../schema/options/stores.ts'
import type { BackendOptions, StorageBackend } from './backend.ts'
import { createFolder } from './folder.ts'

// How each store is opened. Its code is only loaded with its option.
const open: {
  readonly [Name in StoreName]: (own: StoreOptions<Name>, options: BackendOptions) => Promise<StorageBackend>
} = {
  s3: async (own, options) => (await import('./s3/index.ts')).createS3(own, options),
}

type OpenOptions = BackendOptions & Pick<Options, StoreName>

/** The backends of the options by their names: the folder, and the stores whose options are given. */
export type Backends = ReadonlyMap<StorageName, StorageBackend>

/**
 * Returns the storage backend that the options select. It writes nothing before `claim` is called. With a store and a
 * folder that this database uses, bytes are read from either, so that they can be moved while nodes run.
 */
export async function openBackend (options: OpenOptions & Pick<Options, 'uploadsTo'>): Promise<StorageBackend> {
  return joinBackends(await openBackends(options), options)
}

/** Returns all backends of the options. */
export async function openBackends (options: OpenOptions): Promise<Backends> {
  const backends = new Map<StorageName, StorageBackend>([['folder', createFolder(options.uploadsDir)]])
  for (const name of storeNames) {
    const own = options[name]
    if (own) backends.set(name, await open[name](own, options))
  }
  return backends
}

/**
 * Returns the backend that stores new bytes where the options say, by default in the last one, and reads what any of
 * these has.
 */
export async function joinBackends (
  backends: Backends, { uploadsTo = [...backends.keys()].at(-1)! }: Pick<Options, 'uploadsTo'>
): Promise<StorageBackend> {
  const target = backends.get(uploadsTo)!
  if (backends.size === 1) return target
  const { createMoving } = await import('./moving.ts')
  return [...backends.values()].filter((backend) => backend !== target).reduce(createMoving, target)
}

/** Closes the connections of backends that were not joined. */
export function closeBackends (backends: Backends): void {
  for (const backend of backends.values()) backend.close()
}

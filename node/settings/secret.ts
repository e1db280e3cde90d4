import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../embedded/cluster.ts'

/**
 * Returns the secret of a data folder, which encrypts the private signing keys in its embedded database. The first call
 * creates it, in a file that only its owner may read. Nodes that start at the same time get the same one. Throws an
 * `Error` with a sentence if the file cannot be read or created.
 */
export async function readSecret (folder: string): Promise<string> {
  const path = join(folder, 'secret')
  return await tryRead(path) ?? create(folder, path)
}

/** Returns the secret in a file, or undefined if the file does not exist. */
export async function tryRead (path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new Error(`DATA_DIR: ${path} cannot be read.`, { cause: error })
    }
  }
}

// The file gets its name when it is complete and durable: a secret that is lost after the keys were encrypted with it
// would keep the node from starting. A link, unlike a rename, fails if another node was faster.
async function create (folder: string, path: string): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(temporary, `${randomBytes(32).toString('base64url')}\n`, { flag: 'wx', mode: 0o600, flush: true })
  const cause = await link(temporary, path).catch((error: Error) => error)
  await rm(temporary)
  await syncFolder(folder)
  const secret = await tryRead(path)
  if (secret === undefined) throw new Error(`DATA_DIR: ${path} cannot be created.`, { cause })
  return secret
}

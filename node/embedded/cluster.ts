import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmod, mkdir, mkdtemp, open, readdir, readFile, realpath, rename, rm, stat, writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { accountFor, run, chooseRunAs, type Programs, type RunAs } from './binaries.ts'

/** A complete database folder (PostgreSQL calls it a cluster): its parts, and how to start its server. */
export interface Cluster {
  /** PostgreSQL's own folder. */
  readonly data: string
  /** The file for the output of the server. */
  readonly log: string
  /** The password of the only role that can connect. */
  readonly password: string
  /** Distinguishes this folder from a copy of it, which has the same password. It is the server's `cluster_name`. */
  readonly name: string
  readonly runAs: RunAs
}

/** The record in `postmaster.pid` of a server that is running or was killed. */
export interface Running {
  readonly pid: number
  /** The port, after which its Unix socket is named as well. */
  readonly port: number
  /** Whether it listens on a Unix socket in its folder. */
  readonly hasSocket: boolean
  /** Whether it listens on `port` of 127.0.0.1. */
  readonly hasTcp: boolean
  readonly ready: boolean
  /** Whether it has recorded its shared memory, by which PostgreSQL recognises a running server. */
  readonly isComplete: boolean
}

// The line of pg_hba.conf for the Unix socket.
const SOCKET_ACCESS = 'local all usher scram-sha-256\n'

/**
 * Opens the cluster in `<dataDir>/postgres`. Creates it if it does not exist.
 * @param durable whether a new folder is synced to the disk
 * @throws an error that says what to do
 */
export async function openCluster (
  dataDir: string, programs: Programs, durable: boolean, print: (line: string) => void
): Promise<Cluster> {
  try {
    await mkdir(dataDir, { recursive: true, mode: passable() })
    const folder = join(await realpath(dataDir), 'postgres')
    const data = join(folder, 'data')
    if (await stat(data).then(() => false, (error) => error.code === 'ENOENT')) {
      print(`PostgreSQL: creating a new database in ${folder}`)
      await create(folder, programs, durable)
    }
    const runAs = await handOver(data, programs)
    await requirePrivate(data)
    await requireSocketAccess(data)
    const { ino } = await stat(data)
    const password = await readFile(join(folder, 'password'), 'utf8')
    return { data, runAs, log: join(folder, 'log'), name: `usher-${ino}`, password }
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    if (!code || !path) throw error
    throw new Error(
      `The database in ${dataDir} cannot be opened (${code} at ${path}): start the node as the user who owns it, or choose another DATA_DIR.`,
      { cause: error }
    )
  }
}

// The mode of folders around the data. If this process runs as root, the account of the server has to pass through
// them.
const passable = () => process.getuid?.() === 0 ? 0o711 : 0o700

// Creates the cluster in a temporary folder and renames that when it is complete. If the node is killed before, the
// next one does not use the incomplete folder. If two nodes create it at the same time, the first rename succeeds, and
// both use that folder.
async function create (folder: string, programs: Programs, durable: boolean): Promise<void> {
  await removeLeftovers(folder)
  const unfinished = await mkdtemp(`${folder}.new-${process.pid}-`)
  try {
    await chmod(unfinished, passable())
    const [data, password] = [join(unfinished, 'data'), randomBytes(24).toString('base64url')]
    await mkdir(data, { mode: 0o700 })
    const runAs = await handOver(data, programs)
    await run(
      [...runAs.before, programs.initdb, '-D', data, '-U', 'postgres', '--auth=reject', '--encoding=UTF8', '--locale=C',
        '--locale-provider=builtin', '--builtin-locale=C.UTF-8', ...(durable ? [] : ['--no-sync'])],
      runAs
    )
    // The superuser cannot connect at all. The node's role owns its database and nothing else, so that an injected
    // statement could not access files or run programs. The password has 192 random bits, so nobody can guess it, and
    // repeated hashing would only make each connection slower.
    await run(
      [...runAs.before, programs.postgres, '--single', '-D', data, '-c', 'exit_on_error=on', '-c', 'scram_iterations=1',
        '-c', 'log_min_error_statement=panic', '-c', `fsync=${durable ? 'on' : 'off'}`, 'postgres'],
      runAs,
      `create role usher login password '${password}'\ncreate database usher owner usher\n`
    )
    const access = `${SOCKET_ACCESS}host all usher 127.0.0.1/32 scram-sha-256\n`
    await writeFile(join(data, 'pg_hba.conf'), access, { flush: durable })
    await writeFile(join(unfinished, 'password'), password, { mode: 0o600, flush: durable })
    if (durable) await syncFolder(unfinished)
    await rename(unfinished, folder)
    // Without this, a power failure could undo the rename, and the next start would create an empty database.
    if (durable) await syncFolder(join(folder, '..'))
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    const { code, stderr, message } = error as { code?: unknown, stderr?: string, message: string }
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return
    if (stderr === undefined) throw error
    throw new Error(
      `PostgreSQL could not create a database in ${folder} (${reason(stderr || message)}): fix the cause, or set DATABASE_URL.`,
      { cause: error }
    )
  }
}

// Removes the temporary folders of nodes that were killed while they created a cluster. Those of running nodes remain.
async function removeLeftovers (folder: string): Promise<void> {
  for (const entry of await readdir(join(folder, '..'))) {
    const pid = /^postgres\.new-(\d+)-/.exec(entry)?.[1]
    if (pid && !isAlive(Number(pid))) {
      await rm(join(folder, '..', entry), { recursive: true, force: true, maxRetries: 5 })
    }
  }
}

// Changes the owner of a folder that belongs to root (because it is new, or was restored from a backup) to the account
// of the server, preferably the one that owns the parent folder. Returns how to run programs as that account.
async function handOver (data: string, programs: Programs): Promise<RunAs> {
  const { uid } = await stat(data)
  const account = await accountFor(uid || (await stat(join(data, '../..'))).uid)
  if (account && account.uid !== uid) {
    await promisify(execFile)('chown', ['-R', `${account.uid}:${account.gid}`, data])
    await chmod(data, 0o700)
  }
  return chooseRunAs(account, programs.postgres, data)
}

// PostgreSQL checks this as well when it starts, but a server that already runs is joined. Whoever may write to its
// folder could listen in its place. Windows has other permissions.
async function requirePrivate (data: string): Promise<void> {
  const { uid, mode } = await stat(data)
  const self = process.getuid?.()
  if (self === undefined || ((self === 0 || uid === self) && (mode & 0o022) === 0)) return
  throw new Error(`The database in ${data} cannot be used, because it belongs to another user, or others can write ` +
    'to this folder: start the node as the user who owns it, and set its mode to 0700.')
}

// The first checkouts of Usher used a port only, so nobody could connect through the socket.
async function requireSocketAccess (data: string): Promise<void> {
  // PostgreSQL reports a file that is missing.
  const text = await readFile(join(data, 'pg_hba.conf'), 'utf8').catch(() => SOCKET_ACCESS)
  if (text.includes(SOCKET_ACCESS)) return
  throw new Error(`The database in ${data} is that of a checkout of Usher from before release 0.1.0, which no release ` +
    'can read. Nothing was changed. Choose another DATA_DIR, and import the users there that "users export" of that ' +
    'checkout has exported.')
}

/** Syncs a folder to the disk, so that the names of its entries are durable. */
export async function syncFolder (folder: string): Promise<void> {
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

/** Returns the last error in the output of PostgreSQL, or else its last line. */
export function reason (output: string): string {
  const lines = output.split('\n').map((line) => line.trim()).filter(Boolean)
  const line = lines.findLast((line) => /FATAL|PANIC|error:/.test(line)) ?? lines.at(-1) ?? 'it printed nothing'
  return line.replace(/^.*?(FATAL|PANIC|error):\s*/, '')
}

/** Returns the record in `postmaster.pid` of a server that is running or was killed, or undefined if there is none. */
export async function readRunning (cluster: Pick<Cluster, 'data'>): Promise<Running | undefined> {
  const lines = (await readFile(join(cluster.data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  const [pid, port] = [Number(lines[0]), Number(lines[3])]
  if (!pid || !port) return undefined
  const isSet = (line: number) => Boolean(lines[line]?.trim())
  const ready = /ready/.test(String(lines[7]))
  return { pid, port, hasSocket: isSet(4), hasTcp: isSet(5), isComplete: isSet(6), ready }
}

/** Returns the major version of the PostgreSQL that has created the cluster, or undefined if it cannot be read. */
export async function readMajorVersion ({ data }: Cluster): Promise<string | undefined> {
  return (await readFile(join(data, 'PG_VERSION'), 'utf8').catch(() => '')).trim() || undefined
}

/** Returns whether a server has recorded where it listens. */
export const isListening = ({ hasSocket, hasTcp }: Running): boolean => hasSocket || hasTcp

/** How to reach a server: its port, and whether it has a Unix socket. */
export type Address = Pick<Running, 'port' | 'hasSocket'>

/**
 * Returns the URL of the cluster's database. Over TCP, any program of this machine could listen in place of a server
 * that was killed, so the server has to prove that it knows the password.
 */
export function urlOf ({ data, password }: Pick<Cluster, 'data' | 'password'>, { port, hasSocket }: Address): string {
  const host = hasSocket ? encodeURIComponent(data) : '127.0.0.1'
  return `postgres://usher:${password}@${host}:${port}/usher?require_auth=scram-sha-256`
}

/**
 * Returns the URL of the embedded PostgreSQL that runs on a data folder, without starting it or changing anything, or
 * undefined if none runs. Throws if the folder cannot be read.
 */
export async function findRunning (dataDir: string): Promise<string | undefined> {
  const folder = join(await realpath(dataDir).catch(() => dataDir), 'postgres')
  const data = join(folder, 'data')
  if (await stat(data).then(() => false, ({ code }: NodeJS.ErrnoException) => code === 'ENOENT')) return undefined
  await requirePrivate(data)
  const cluster = { data, password: await readFile(join(folder, 'password'), 'utf8') }
  const running = await readRunning(cluster)
  return running && isListening(running) && isAlive(running.pid) ? urlOf(cluster, running) : undefined
}

/** Returns whether a process with this number exists, even if it belongs to another user. */
export function isAlive (pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

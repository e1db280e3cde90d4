import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { environment, type Programs } from './binaries.ts'
import { reason, type Cluster } from './cluster.ts'

/**
 * Why a server has ended. `passes` tells whether another attempt makes sense, `isPortTaken` whether its port was taken.
 */
export interface Failure { readonly why: string, readonly passes: boolean, readonly isPortTaken: boolean }

/** The process of a launched server. `failure` is set when it has ended. */
export interface Launched { readonly pid: number | undefined, failure?: () => Promise<Failure> }

/** Where a server listens: on a Unix socket that is named after the port and, with `tcp`, on that port of 127.0.0.1. */
export interface Place { readonly port: number, readonly tcp: boolean }

/** The port of a server without TCP. It only names the socket, for programs such as psql that expect it. */
export const SOCKET_PORT = 5432
// Linux assigns ports from 32768 upwards to outgoing connections, other systems from 49152. If the port of a server
// were in that range, a client could take it during a restart, even one that is trying to connect to that server.
const [FIRST_PORT, PORTS] = [15_000, 15_000]
// Node.js has no Unix sockets on Windows.
const HAS_SOCKETS = process.platform !== 'win32'

const PORT_TAKEN = /TCP\/IP socket/
// The server of another node is starting or stopping.
const PASSING = /postmaster\.pid|shared memory block/

// The time and the process number, which `linesOf` reads.
const LOG_LINE_PREFIX = '%m [%p] '

const SETTINGS = {
  max_connections: '100',
  // Superusers cannot connect, see `create` in node/embedded/cluster.ts, so no connections are reserved for them.
  superuser_reserved_connections: '0',
  shared_buffers: '128MB',
  // Errors of statements are not logged: a rejected row is handled by the service, and its message can contain an
  // e-mail address.
  log_min_messages: 'log',
  log_checkpoints: 'off'
}

/**
 * Spawns a server in a separate session, so that neither Ctrl-C nor the end of this process stops it.
 * @param place where it listens. The port is not probed, because two nodes that do so at the same time block each other
 * @param stale the process that `postmaster.pid` names but that is not a server of this folder
 */
export async function launch (
  cluster: Cluster, programs: Programs, settings: Readonly<Record<string, string>>, { port, tcp }: Place, stale = 0
): Promise<Launched> {
  const fixed = {
    log_line_prefix: LOG_LINE_PREFIX,
    cluster_name: cluster.name,
    listen_addresses: tcp ? '127.0.0.1' : '',
    // The server's working directory is the folder of its data, which only its user can enter. A relative path is never
    // too long.
    unix_socket_directories: HAS_SOCKETS ? '.' : '',
    unix_socket_permissions: '0700',
  }
  await removeSocketLock(cluster, port)
  const [file = '', ...args] = [
    ...cluster.runAs.before, programs.postgres, '-D', cluster.data, '-p', String(port),
    ...Object.entries({ ...SETTINGS, ...settings, ...fixed }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  ]
  const output = await open(cluster.log, 'a', 0o600)
  const { size } = await output.stat()
  const child = spawn(file, args, {
    ...cluster.runAs.options,
    // PostgreSQL does not start while the process named in postmaster.pid exists, and after a crash any program can
    // have that number. With this variable, pg_ctl names a process that is not a server, and PostgreSQL then checks
    // only the shared memory. That is safe even if the assumption is wrong, and it avoids deleting the file of another
    // server.
    env: { ...environment(), PG_GRANDPARENT_PID: String(stale) },
    cwd: '/',
    detached: true,
    stdio: ['ignore', output.fd, output.fd]
  })
  const launched: Launched = { pid: child.pid }
  child.once(
    'error', ({ message }) => { launched.failure = async () => ({ why: message, passes: false, isPortTaken: false }) }
  )
  child.once('exit', (code) => {
    launched.failure = async () => {
      const why = reason(linesOf(child.pid, (await readFile(cluster.log)).toString('utf8', size)))
      const isPortTaken = PORT_TAKEN.test(why)
      // Without an exit code, it was stopped by another node or killed, so another attempt may succeed.
      return { why, passes: !code || isPortTaken || PASSING.test(why), isPortTaken }
    }
  })
  child.unref()
  await output.close()
  return launched
}

/**
 * Returns the log lines of a process, and those without a process number. While several nodes try to start a server,
 * their servers share one log, and the one that starts logs "FATAL: the database system is starting up" for every early
 * client. A node whose server did not start would give up if it mistook this line for one of its own server.
 */
export function linesOf (pid: number | undefined, output: string): string {
  return output.split('\n')
    .filter((line) => (/^[\d-]+ [\d:.]+ \S+ \[(\d+)\] /.exec(line)?.[1] ?? String(pid)) === String(pid)).join('\n')
}

/** Returns a port of 127.0.0.1 that is currently free and that no system assigns to outgoing connections. */
export async function choosePort (): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    const probe = createServer().listen(port, '127.0.0.1')
    const isFree = await once(probe, 'listening').then(() => true, () => false)
    probe.close()
    if (isFree) return port
  }
}

// Removes the lock file of the socket, which `postmaster.pid` makes redundant: a server that has not got the latter
// never touches the socket. The lock of a copied folder, or of a server that was killed, would prevent the start as
// long as any program has the recorded process number.
const removeSocketLock = ({ data }: Cluster, port: number): Promise<void> =>
  rm(join(data, `.s.PGSQL.${port}.lock`), { force: true, recursive: true })

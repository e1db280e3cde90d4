import { spawn } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { environment, type Programs } from './binaries.ts'
import { reason, type Cluster } from './cluster.ts'

/** Why a server has ended: whether another try makes sense, and whether its port was taken. */
export interface Failure { readonly why: string, readonly passes: boolean, readonly isPortTaken: boolean }

/** A server's process. `failure` is set once it has ended. */
export interface Launched { readonly pid: number | undefined, failure?: () => Promise<Failure> }

const PORT_TAKEN = /TCP\/IP socket/
// Another node's server is starting or ending.
const PASSING = /postmaster\.pid|shared memory block/

// The time and the process number, see linesOf().
const LOG_LINE_PREFIX = '%m [%p] '

const SETTINGS = {
  max_connections: '100',
  // Nobody can connect as a superuser, see node/embedded/cluster.ts.
  superuser_reserved_connections: '0',
  shared_buffers: '128MB',
  // A refused row is an answer of the service; in this log it would be somebody's e-mail address.
  log_min_messages: 'log',
  log_checkpoints: 'off'
}

/**
 * Spawns a server in a session of its own, which neither Ctrl-C nor the death of this process reaches.
 * @param port the port to listen on. It is not probed: two nodes that probe one port at a time block each other.
 * @param stale the process that `postmaster.pid` names and that has been found not to be a server of this folder
 */
export async function launch (cluster: Cluster, programs: Programs, settings: Readonly<Record<string, string>>, port: number, stale = 0): Promise<Launched> {
  const fixed = { log_line_prefix: LOG_LINE_PREFIX, cluster_name: cluster.name, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const [file = '', ...args] = [
    ...cluster.runAs.before, programs.postgres, '-D', cluster.data, '-p', String(port),
    ...Object.entries({ ...SETTINGS, ...settings, ...fixed }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  ]
  const output = await open(cluster.log, 'a', 0o600)
  const { size } = await output.stat()
  const child = spawn(file, args, {
    ...cluster.runAs.options,
    // PostgreSQL refuses to start while the process named in postmaster.pid lives, and after a crash that can
    // be anybody's. By this variable pg_ctl tells it of a process that is certainly no server, and then only the
    // shared memory decides: still safe if we are wrong, and nobody deletes another server's file.
    env: { ...environment(), PG_GRANDPARENT_PID: String(stale) },
    cwd: '/',
    detached: true,
    stdio: ['ignore', output.fd, output.fd]
  })
  const launched: Launched = { pid: child.pid }
  child.once('error', ({ message }) => { launched.failure = async () => ({ why: message, passes: false, isPortTaken: false }) })
  child.once('exit', (code) => {
    launched.failure = async () => {
      const why = reason(linesOf(child.pid, (await readFile(cluster.log)).toString('utf8', size)))
      const isPortTaken = PORT_TAKEN.test(why)
      // Without a code it was ended by another node or killed, and not for any fault of its own.
      return { why, passes: !code || isPortTaken || PASSING.test(why), isPortTaken }
    }
  })
  child.unref()
  await output.close()
  return launched
}

/**
 * Returns the lines of a process, and those that name none. Several servers share one log while nodes race to start
 * one, and the winner logs "FATAL: the database system is starting up" for every early client: a loser that took this
 * line for its own would give up.
 */
export function linesOf (pid: number | undefined, output: string): string {
  return output.split('\n').filter((line) => (/^[\d-]+ [\d:.]+ \S+ \[(\d+)\] /.exec(line)?.[1] ?? String(pid)) === String(pid)).join('\n')
}

import { spawn } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { environment, type Programs } from './binaries.ts'
import { reason, type Cluster } from './cluster.ts'

/** Why a server has ended. `passes` tells whether another attempt makes sense, `isPortTaken` whether its port was taken. */
export interface Failure { readonly why: string, readonly passes: boolean, readonly isPortTaken: boolean }

/** The process of a launched server. `failure` is set when it has ended. */
export interface Launched { readonly pid: number | undefined, failure?: () => Promise<Failure> }

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
  // Errors of statements are not logged: a rejected row is handled by the service, and its message can contain an e-mail address.
  log_min_messages: 'log',
  log_checkpoints: 'off'
}

/**
 * Spawns a server in a separate session, so that neither Ctrl-C nor the end of this process stops it.
 * @param port the port to listen on. It is not probed, because two nodes that probe a port at the same time block each other
 * @param stale the process that `postmaster.pid` names but that is not a server of this folder
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
    // PostgreSQL does not start while the process named in postmaster.pid exists, and after a crash any program can have that
    // number. With this variable, pg_ctl names a process that is not a server, and PostgreSQL then checks only the shared memory.
    // That is safe even if the assumption is wrong, and it avoids deleting the file of another server.
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
      // Without an exit code, it was stopped by another node or killed, so another attempt may succeed.
      return { why, passes: !code || isPortTaken || PASSING.test(why), isPortTaken }
    }
  })
  child.unref()
  await output.close()
  return launched
}

/**
 * Returns the log lines of a process, and those without a process number. While several nodes try to start a server, their servers
 * share one log, and the one that starts logs "FATAL: the database system is starting up" for every early client. A node whose
 * server did not start would give up if it mistook this line for one of its own server.
 */
export function linesOf (pid: number | undefined, output: string): string {
  return output.split('\n').filter((line) => (/^[\d-]+ [\d:.]+ \S+ \[(\d+)\] /.exec(line)?.[1] ?? String(pid)) === String(pid)).join('\n')
}

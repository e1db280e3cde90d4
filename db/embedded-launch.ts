import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { environment, type Programs } from './embedded-binaries.ts'
import { reason, type Cluster } from './embedded-cluster.ts'

/** A server's process; once it has ended, `failure` says why, and whether another try makes sense. */
export interface Launched { readonly pid: number | undefined, failure?: () => Promise<{ why: string, passes: boolean }> }

// Another node's server starting or ending just now, or a port taken in between.
const PASSING = /postmaster\.pid|shared memory block|TCP\/IP socket/

const SETTINGS = {
  max_connections: '100',
  // Nobody can connect as a superuser, see db/embedded-cluster.ts.
  superuser_reserved_connections: '0',
  shared_buffers: '128MB',
  // A refused row is an answer of the service; in this log it would be somebody's e-mail address.
  log_min_messages: 'log',
  log_checkpoints: 'off'
}

/**
 * Spawns a server in a session of its own, which neither Ctrl-C nor the death of this process reaches.
 * @param wanted the port, if it is free
 * @param stale the process that `postmaster.pid` names and that has been found not to be a server of this folder
 */
export async function launch (cluster: Cluster, programs: Programs, settings: Readonly<Record<string, string>>, wanted = 0, stale = 0): Promise<Launched> {
  const port = await freePort(wanted).catch(() => freePort(0))
  const fixed = { cluster_name: cluster.name, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const [file = '', ...args] = [
    ...cluster.way.before, programs.postgres, '-D', cluster.data, '-p', String(port),
    ...Object.entries({ ...SETTINGS, ...settings, ...fixed }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  ]
  const output = await open(cluster.log, 'a', 0o600)
  const { size } = await output.stat()
  const child = spawn(file, args, {
    ...cluster.way.options,
    // PostgreSQL refuses to start while the process named in postmaster.pid lives, and after a crash that can
    // be anybody's. By this variable pg_ctl tells it of a process that is certainly no server, and then only the
    // shared memory decides: still safe if we are wrong, and nobody deletes another server's file.
    env: { ...environment(), PG_GRANDPARENT_PID: String(stale) },
    cwd: '/',
    detached: true,
    stdio: ['ignore', output.fd, output.fd]
  })
  const launched: Launched = { pid: child.pid }
  child.once('error', ({ message }) => { launched.failure = async () => ({ why: message, passes: false }) })
  child.once('exit', (code) => {
    launched.failure = async () => {
      const why = reason((await readFile(cluster.log)).toString('utf8', size))
      // Without a code it was ended by another node or killed, and not for any fault of its own.
      return { why, passes: !code || PASSING.test(why) }
    }
  })
  child.unref()
  await output.close()
  return launched
}

// It can be taken again before the server has it; then the server fails, and the next one gets another.
async function freePort (wanted: number): Promise<number> {
  const probe = createServer().listen(wanted, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  return port
}

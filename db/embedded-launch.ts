import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { environment, type Programs } from './embedded-binaries.ts'
import { reason, type Cluster } from './embedded-cluster.ts'

/** A server's process, and why it ended when it did. */
export interface Launched { readonly pid: number | undefined, failure?: string }

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
  const port = await freePort(wanted)
  const fixed = { cluster_name: cluster.name, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const [file = '', ...args] = [
    ...cluster.way.before, programs.postgres, '-D', cluster.data, '-p', String(port),
    ...Object.entries({ ...SETTINGS, ...settings, ...fixed }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  ]
  await using output = await open(cluster.log, 'a', 0o600)
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
  child.unref()
  const launched: Launched = { pid: child.pid }
  child.once('error', (error) => { launched.failure = error.message })
  child.once('exit', async () => {
    const printed = await readFile(cluster.log)
    launched.failure = reason(printed.subarray(size).toString())
  })
  return launched
}

async function freePort (wanted: number): Promise<number> {
  const probe = createServer().listen(wanted, '127.0.0.1')
  try {
    await once(probe, 'listening')
    return (probe.address() as AddressInfo).port
  } catch (error) {
    if (!wanted) throw error
    return await freePort(0)
  } finally {
    probe.close()
  }
}

import { setTimeout } from 'node:timers/promises'
import { findPrograms } from './binaries.ts'
import { openCluster } from './cluster.ts'
import { attachToServer, type Limits } from './attach.ts'
import { urlOf, type Lease } from './lease.ts'

/** A running PostgreSQL, and this node's share in it. */
export interface EmbeddedServer {
  /** `postgres://usher:…@127.0.0.1:<port>/usher` */
  readonly url: string
  /** Whether this call started the server. Otherwise it was running already, used by another node or left by a killed one. */
  readonly started: boolean
  /** Releases this node's share. If it is the last one, stops the server and waits until it is down (at most 30 s). Never throws. */
  stop (): Promise<void>
}

export interface EmbeddedOptions {
  /** The folder of the node's data. The first start creates the database in its subfolder `postgres`. */
  readonly dataDir: string
  readonly log?: (line: string) => void
  /** Further settings of PostgreSQL, for a server that this call starts. */
  readonly settings?: Readonly<Record<string, string>>
  readonly limits?: Limits
}

const RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000

/**
 * Starts the PostgreSQL server of the package, or joins the one that already runs on this folder. It listens on 127.0.0.1 only. It
 * is a separate process, which continues to run when this one ends, unless `stop` is called.
 * @throws an error that says what to do, within about a minute
 */
export async function startEmbedded ({ dataDir, log = () => {}, settings = {}, limits = {} }: EmbeddedOptions): Promise<EmbeddedServer> {
  const programs = await findPrograms()
  const cluster = await openCluster(dataDir, programs, settings.fsync !== 'off', log)
  const abort = new AbortController()
  const entry = { cluster, programs, settings, limits, log, signal: abort.signal }

  const first = await attachToServer(entry)
  const { port, started } = first
  log(`PostgreSQL: ${started ? 'started' : 'joined the running server'} on 127.0.0.1:${port}; its log is ${cluster.log}`)
  let lease = keep(first.lease)
  let stopping: Promise<void> | undefined

  function keep (taken: Lease): Promise<Lease | undefined> {
    taken.closed.then(() => { if (!stopping) lease = regain() })
    return Promise.resolve(taken)
  }

  // Takes a new lease when the server was killed, or has restarted because one of its processes crashed. Without a lease, another
  // node could stop the server while this one uses it. It stays on the same port, so that the pools of all nodes reconnect.
  async function regain (): Promise<Lease | undefined> {
    log('PostgreSQL: the server was lost, joining or starting it again')
    for (let pause = limits.retryMs ?? RETRY_MS; !abort.signal.aborted; pause = Math.min(2 * pause, LONGEST_RETRY_MS)) {
      try {
        const again = await attachToServer(entry, port)
        log(`PostgreSQL: available again on 127.0.0.1:${again.port}`)
        if (again.port !== port) log(`PostgreSQL: this node still connects to port ${port}: restart the node`)
        return await keep(again.lease)
      } catch (error) {
        log((error as Error).message)
      }
      // The cause may be temporary, for example a full disk. The pause ends early when the node stops.
      await setTimeout(pause, undefined, { signal: abort.signal }).catch(() => {})
    }
  }

  async function stop (): Promise<void> {
    abort.abort()
    const down = await (await lease)?.release()
    log(`PostgreSQL: ${down ? 'stopped' : 'left running for the nodes that use it'}`)
  }

  return { url: urlOf(cluster, port), started, stop: () => (stopping ??= stop()) }
}

import { setTimeout } from 'node:timers/promises'
import { findPrograms } from './binaries.ts'
import { openCluster } from './cluster.ts'
import { attachToServer, type Limits } from './attach.ts'
import { urlOf, type Lease } from './lease.ts'

/** A running PostgreSQL, and this node's share in it. */
export interface EmbeddedServer {
  /** `postgres://usher:…@127.0.0.1:<port>/usher` */
  readonly url: string
  /** Whether this call started it; otherwise it was running, left by a killed node or used by another one. */
  readonly started: boolean
  /** Gives the share back; the last one out stops the server and waits until it is down (at most 30 s). Never throws. */
  stop (): Promise<void>
}

export interface EmbeddedOptions {
  /** The database is in its subfolder `postgres`, which the first start makes. */
  readonly dataDir: string
  readonly log?: (line: string) => void
  /** More of PostgreSQL's settings, for a server that this call starts. */
  readonly settings?: Readonly<Record<string, string>>
  readonly limits?: Limits
}

const RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000

/**
 * Starts the PostgreSQL that comes with the package, or joins the one that runs on this folder already. It
 * listens on 127.0.0.1 only, and is a process of its own that outlives this one unless `stop` is called.
 * @throws an `Error` of one sentence that says what to do, within about a minute
 */
export async function startEmbedded ({ dataDir, log = () => {}, settings = {}, limits = {} }: EmbeddedOptions): Promise<EmbeddedServer> {
  const programs = await findPrograms()
  const cluster = await openCluster(dataDir, programs, settings.fsync !== 'off', log)
  const abort = new AbortController()
  const entry = { cluster, programs, settings, limits, log, signal: abort.signal }

  const first = await attachToServer(entry)
  const { port, started } = first
  log(`PostgreSQL: ${started ? 'started' : 'joined the one that runs'} on 127.0.0.1:${port}; it logs to ${cluster.log}`)
  let lease = keep(first.lease)
  let stopping: Promise<void> | undefined

  function keep (taken: Lease): Promise<Lease | undefined> {
    taken.closed.then(() => { if (!stopping) lease = regain() })
    return Promise.resolve(taken)
  }

  // The server was killed, or restarted itself when one of its processes crashed. Without a lease another node
  // could stop it under this one; on the same port the pools of all nodes find it again by themselves.
  async function regain (): Promise<Lease | undefined> {
    log('PostgreSQL: lost, joining or starting it again')
    for (let pause = limits.retryMs ?? RETRY_MS; !abort.signal.aborted; pause = Math.min(2 * pause, LONGEST_RETRY_MS)) {
      try {
        const again = await attachToServer(entry, port)
        log(`PostgreSQL: back on 127.0.0.1:${again.port}`)
        if (again.port !== port) log(`PostgreSQL: this node still connects to port ${port}, restart it`)
        return await keep(again.lease)
      } catch (error) {
        log((error as Error).message)
      }
      // The obstacle may pass, for example a full disk. The pause ends early when the node stops.
      await setTimeout(pause, undefined, { signal: abort.signal }).catch(() => {})
    }
  }

  async function stop (): Promise<void> {
    abort.abort()
    const down = await (await lease)?.release()
    log(`PostgreSQL: ${down ? 'stopped' : 'left to the nodes that use it'}`)
  }

  return { url: urlOf(cluster, port), started, stop: () => (stopping ??= stop()) }
}

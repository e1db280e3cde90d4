import { setTimeout } from 'node:timers/promises'
import { findPrograms, type Programs } from './embedded-binaries.ts'
import { isAlive, openCluster, readRunning, type Cluster } from './embedded-cluster.ts'
import { takeLease, urlOf, type Lease } from './embedded-lease.ts'
import { launch, type Launched } from './embedded-launch.ts'

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
}

// Recovering from a crash takes a while.
const START_MS = 60_000
const POLL_MS = 10
// So long a server may be between its first file and its first answer before another one is tried.
const DOUBT_MS = 500

/**
 * Starts the PostgreSQL that comes with the package, or joins the one that runs on this folder already. It
 * listens on 127.0.0.1 only, and is a process of its own that outlives this one unless `stop` is called.
 * @throws an `Error` of one sentence that says what to do, within about a minute
 */
export async function startEmbedded ({ dataDir, log = () => {}, settings = {} }: EmbeddedOptions): Promise<EmbeddedServer> {
  const programs = await findPrograms()
  const cluster = await openCluster(dataDir, programs, settings.fsync !== 'off', log)
  const abort = new AbortController()
  const enter = (wanted?: number) => join(cluster, programs, settings, abort.signal, wanted)

  const first = await enter()
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
    try {
      const again = await enter(port)
      log(`PostgreSQL: back on 127.0.0.1:${again.port}`)
      return await keep(again.lease)
    } catch (error) {
      log((error as Error).message)
    }
  }

  async function stop (): Promise<void> {
    abort.abort()
    const down = await (await lease)?.giveBack()
    log(`PostgreSQL: ${down ? 'stopped' : 'left to the nodes that use it'}`)
  }

  return { url: urlOf(cluster, port), started, stop: () => (stopping ??= stop()) }
}

// There is no lock of ours around this: PostgreSQL itself sees to it that one server at most runs on a folder.
// Whoever fails to start one finds the other's, and joins it.
async function join (cluster: Cluster, programs: Programs, settings: Readonly<Record<string, string>>, signal: AbortSignal, wanted?: number): Promise<{ lease: Lease, port: number, started: boolean }> {
  let mine: Launched | undefined
  let seen = { pid: 0, since: 0 }
  let why = 'it does not answer'
  for (const deadline = Date.now() + START_MS; Date.now() < deadline && !signal.aborted; await setTimeout(POLL_MS)) {
    const running = await readRunning(cluster)
    if (running && running.pid !== seen.pid) seen = { pid: running.pid, since: Date.now() }
    const isDoubtful = () => Date.now() - seen.since > DOUBT_MS
    if (running && (running.ready || isDoubtful())) {
      try {
        const lease = await takeLease(cluster, running)
        if (lease) return { lease, port: running.port, started: running.pid === mine?.pid }
        seen.since = Date.now()
        continue
      } catch (error) {
        why = (error as Error).message
      }
    }
    if (mine?.failure) {
      const failure = await mine.failure()
      why = failure.why
      if (!failure.passes) break
      mine = undefined
    }
    if (!mine && (!running || isDoubtful() || !isAlive(running.pid))) {
      mine = await launch(cluster, programs, settings, wanted ?? running?.port, running?.pid)
    }
  }
  throw new Error(`PostgreSQL does not run in ${cluster.data} (${why}): see ${cluster.log}, or set DATABASE_URL.`)
}

import { setTimeout } from 'node:timers/promises'
import { NODE_DEADLINES, type NodeDeadlines } from '../process/deadlines.ts'
import { findPrograms } from './binaries.ts'
import { openCluster, urlOf, type Running } from './cluster.ts'
import { attachToServer } from './attach.ts'
import type { Lease } from './lease.ts'

/** A running PostgreSQL, and this node's share in it. */
export interface EmbeddedServer {
  /** A URL for `createClient`, which is that of a Unix socket unless the server only has TCP. */
  readonly url: string
  /** The URL of its port of 127.0.0.1 for other clients, or undefined if it has only a Unix socket. */
  readonly tcpUrl: string | undefined
  /**
   * Whether this call started the server. Otherwise it was running already, used by another node or left by a killed
   * one.
   */
  readonly started: boolean
  /**
   * Releases this node's share. If it is the last one, stops the server and waits until it is down (at most 30 s).
   * Never throws.
   */
  stop (): Promise<void>
}

export interface EmbeddedOptions {
  /** The folder of the node's data. The first start creates the database in its subfolder `postgres`. */
  readonly dataDir: string
  readonly log?: (line: string) => void
  /** Further settings of PostgreSQL, for a server that this call starts. */
  readonly settings?: Readonly<Record<string, string>>
  /** Whether a server that this call starts also listens on a port of 127.0.0.1. Off by default, except on Windows. */
  readonly tcp?: boolean
  /** How long it waits, which tests change. */
  readonly deadlines?: NodeDeadlines
  /** Milliseconds before the second attempt to get a lost server back. They double with each attempt, up to 30 s. */
  readonly retryMs?: number
}

const RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000

/**
 * Starts the PostgreSQL server of the package, or joins the one that already runs on this folder. It listens on a Unix
 * socket that only its own user can reach. It is a separate process, which continues to run when this one ends, unless
 * `stop` is called.
 * @throws an error that says what to do, within about a minute
 */
export async function startEmbedded (
  {
    dataDir, log = () => {}, settings = {}, tcp = process.platform === 'win32',
    deadlines = NODE_DEADLINES, retryMs = RETRY_MS,
  }: EmbeddedOptions
): Promise<EmbeddedServer> {
  const programs = await findPrograms()
  const cluster = await openCluster(dataDir, programs, settings.fsync !== 'off', log)
  const abort = new AbortController()
  const entry = { cluster, programs, settings, tcp, deadlines, log, signal: abort.signal }

  const first = await attachToServer(entry)
  const { running, started } = first
  const placeOf = ({ hasSocket, port }: Running) =>
    hasSocket ? `the socket ${cluster.data}/.s.PGSQL.${port}` : `127.0.0.1:${port}`
  const how = started ? 'started' : 'joined the running server'
  log(`PostgreSQL: ${how} on ${placeOf(running)}; its log is ${cluster.log}`)
  let lease = keep(first.lease)
  let stopping: Promise<void> | undefined

  function keep (taken: Lease): Promise<Lease | undefined> {
    taken.closed.then(() => { if (!stopping) lease = regain() })
    return Promise.resolve(taken)
  }

  // Returns whether the pools of this node reach a server.
  const isSame = ({ port, hasSocket, hasTcp }: Running) =>
    port === running.port && (running.hasSocket ? hasSocket : hasTcp)

  // Takes a new lease when the server was killed, or has restarted because one of its processes crashed. Without a
  // lease, another node could stop the server while this one uses it. It stays where it was, so that the pools of all
  // nodes reconnect.
  async function regain (): Promise<Lease | undefined> {
    log('PostgreSQL: the server was lost, joining or starting it again')
    for (let pause = retryMs; !abort.signal.aborted; pause = Math.min(2 * pause, LONGEST_RETRY_MS)) {
      try {
        const again = await attachToServer(entry, running)
        log(`PostgreSQL: available again on ${placeOf(again.running)}`)
        if (!isSame(again.running)) log(`PostgreSQL: this node still connects to ${placeOf(running)}: restart the node`)
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

  const tcpUrl = running.hasTcp ? urlOf(cluster, { ...running, hasSocket: false }).replace(/\?.*/, '') : undefined
  return { url: urlOf(cluster, running), tcpUrl, started, stop: () => (stopping ??= stop()) }
}

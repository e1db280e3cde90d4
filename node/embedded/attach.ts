import { setTimeout } from 'node:timers/promises'
import { PROGRAM } from '../../schema/program.ts'
import type { Programs } from './binaries.ts'
import { isAlive, readMajorVersion, readPort, readRunning, writePort, type Cluster, type Running } from './cluster.ts'
import { launch, type Failure, type Launched } from './launch.ts'
import { ForeignServer, takeLease, type Lease } from './lease.ts'
import { choosePort } from './port.ts'

// Long, because a server that recovers from a crash takes a while to start.
const START_MS = 60_000
const POLL_MS = 10
// The pause before the next launch if the last one failed for a temporary reason. Each launch costs a process.
const RELAUNCH_MS = 100
// If a server has not recorded that it is ready within this time after its first file, it is contacted anyway.
const DOUBT_MS = 500
// If a process has not recorded its shared memory within this time, it is not a server: another program reuses the process number.
const INCOMPLETE_MS = 30_000
// A start waits for the recorded port for this time, because nodes that are still running connect to that port.
const PORT_MS = 10_000
// PostgreSQL's message for files of another major version.
const INCOMPATIBLE = /files are incompatible with server/

/** Time limits in milliseconds. The defaults suit every machine; tests shorten them. */
export interface Limits {
  /** How long the server may take to answer a query before it counts as hanging. */
  readonly answerMs?: number
  /** How long a start waits for the port of the last server before it chooses another one. */
  readonly portMs?: number
  /** The pause after the first failed attempt to get a lost server back. It doubles with each attempt, up to 30 s. */
  readonly retryMs?: number
}

/** The options to join or start a server. */
export interface AttachOptions {
  readonly cluster: Cluster
  readonly programs: Programs
  readonly settings: Readonly<Record<string, string>>
  readonly limits: Limits
  readonly log: (line: string) => void
  /** Aborts the attempt. If this node has launched a server, it waits for that one, so that the lease can be released. */
  readonly signal: AbortSignal
}

/** A node's share in a running server. `started` tells whether this attempt launched the server. */
export interface Attachment { readonly lease: Lease, readonly port: number, readonly started: boolean }

/**
 * Joins the server that runs on the cluster, or starts one. This needs no lock, because PostgreSQL ensures that at most one server
 * runs on a folder. If two nodes launch a server at the same time, one launch fails, and that node joins the server of the other.
 * Throws an error that says what to do if there is no server after a minute, or if it cannot start.
 * @param own the only port that may be used, because the node's pools connect to it
 */
export async function attachToServer (entry: AttachOptions, own?: number): Promise<Attachment> {
  const { cluster, log } = entry
  const joined = await findOrLaunch(entry, own)
  if (joined.started) await writePort(cluster, joined.port).catch(({ message }) => log(`PostgreSQL: its port cannot be recorded (${message})`))
  return joined
}

async function findOrLaunch ({ cluster, programs, settings, limits, log, signal }: AttachOptions, own?: number): Promise<Attachment> {
  const port = selectPort(limits, log, own, await readPort(cluster))
  let launched: Launched | undefined
  let seen = { pid: 0, since: 0 }
  let why = 'it does not answer'
  for (const deadline = Date.now() + START_MS; Date.now() < deadline && (launched || !signal.aborted); await setTimeout(POLL_MS)) {
    const running = await readRunning(cluster)
    if (running && running.pid !== seen.pid) seen = { pid: running.pid, since: Date.now() }
    if (running) port.record(running.port)
    const age = () => Date.now() - seen.since
    if (running && (running.ready || age() > DOUBT_MS)) {
      try {
        const lease = await takeLease(cluster, running, limits.answerMs)
        if (lease) return { lease, port: running.port, started: running.pid === launched?.pid }
        seen.since = Date.now()
        continue
      } catch (error) {
        if (error instanceof ForeignServer) port.avoid(running.port)
        why = (error as Error).message
      }
    }
    if (launched?.failure) {
      const failure = await launched.failure()
      why = failure.why
      if (!failure.passes) break
      port.recordFailure(failure)
      launched = undefined
      await setTimeout(RELAUNCH_MS)
    } else if (!launched && (!running || isReplaceable(running, age()))) {
      launched = await launch(cluster, programs, settings, await port.next(), running?.pid)
    }
  }
  const other = INCOMPATIBLE.test(why) && await readMajorVersion(cluster)
  if (other) throw new Error(explainVersion(cluster, other))
  throw new Error(`PostgreSQL does not run in ${cluster.data} (${why}): see ${cluster.log}, or set DATABASE_URL.`)
}

// A new major version cannot read the files of another one, and the package has the programs of one version only.
const explainVersion = ({ data }: Cluster, version: string): string =>
  `The database in ${data} was created by PostgreSQL ${version}, and this release has another version. With the release of Usher that has run ` +
  `until now, run "${PROGRAM} backup FILE". Then, with this release, choose a new DATA_DIR and run "${PROGRAM} restore FILE".`

/**
 * Returns whether a server may be launched in place of the recorded one. The launch tells PostgreSQL that the recorded process is
 * not a server, and PostgreSQL then relies only on the recorded shared memory. If that is not recorded yet, the launch could replace
 * the file of a server that is starting slowly, and no node would find that server.
 * @param age how long the record has been the same, in milliseconds
 */
export function isReplaceable ({ pid, isComplete }: Running, age: number): boolean {
  return !isAlive(pid) || age > (isComplete ? DOUBT_MS : INCOMPLETE_MS)
}

// Selects the port of each launch: the node's own port, or else the recorded one unless it stays taken, or else a new one.
function selectPort ({ portMs = PORT_MS }: Limits, log: (line: string) => void, own?: number, last?: number) {
  let [port, foreign, takenSince] = [own ?? last, 0, 0]

  return {
    // Uses the port in `postmaster.pid`, for a server whose port was never recorded in the port file.
    record (recorded: number): void {
      port ??= recorded
    },

    avoid (port: number): void {
      foreign = port
    },

    recordFailure ({ isPortTaken }: Failure): void {
      if (!isPortTaken || takenSince) return
      takenSince = Date.now()
      log(`PostgreSQL: port ${port} is taken by another program, waiting until it is free`)
    },

    async next (): Promise<number> {
      const isLost = port === foreign || (takenSince && Date.now() - takenSince > portMs)
      return own ?? (port && !isLost ? port : choosePort())
    },
  }
}

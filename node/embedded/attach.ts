import { setTimeout } from 'node:timers/promises'
import type { NodeDeadlines } from '../process/deadlines.ts'
import { PROGRAM } from '../../schema/runtime/program.ts'
import type { Programs } from './binaries.ts'
import { isAlive, isListening, readMajorVersion, readRunning, type Cluster, type Running } from './cluster.ts'
import { choosePort, launch, SOCKET_PORT, type Launched, type Place } from './launch.ts'
import { ForeignServer, takeLease, type Lease } from './lease.ts'

const POLL_MS = 10
// The pause before the next launch if the last one failed for a temporary reason. Each launch costs a process.
const RELAUNCH_MS = 100
// If a server has not recorded that it is ready within this time after its first file, it is contacted anyway.
const DOUBT_MS = 500
// PostgreSQL's message for files of another major version.
const INCOMPATIBLE = /files are incompatible with server/

/** The options to join or start a server. */
export interface AttachOptions {
  readonly cluster: Cluster
  readonly programs: Programs
  readonly settings: Readonly<Record<string, string>>
  /** Whether a server that this attempt launches also listens on a port of 127.0.0.1. */
  readonly tcp: boolean
  readonly deadlines: NodeDeadlines
  readonly log: (line: string) => void
  /**
   * Aborts the attempt. If this node has launched a server, it waits for that one, so that the lease can be released.
   */
  readonly signal: AbortSignal
}

/** A node's share in a running server. `started` tells whether this attempt launched the server. */
export interface Attachment { readonly lease: Lease, readonly running: Running, readonly started: boolean }

/**
 * Joins the server that runs on the cluster, or starts one. This needs no lock, because PostgreSQL ensures that at most
 * one server runs on a folder. If two nodes launch a server at the same time, one launch fails, and that node joins the
 * server of the other. Throws an error that says what to do if there is no server after a minute, or if it cannot
 * start.
 * @param lost the server that a new one replaces, where the pools of nodes connect
 */
export async function attachToServer (
  { cluster, programs, settings, tcp, deadlines, log, signal }: AttachOptions, lost?: Running
): Promise<Attachment> {
  let launched: Launched | undefined
  let seen = { pid: 0, since: 0 }
  let why = 'it does not answer'
  let [foreignPort, isReported] = [0, false]
  const end = Date.now() + deadlines.embeddedStart
  for (; Date.now() < end && (launched || !signal.aborted); await setTimeout(POLL_MS)) {
    const running = await readRunning(cluster)
    if (running && running.pid !== seen.pid) seen = { pid: running.pid, since: Date.now() }
    const age = () => Date.now() - seen.since
    if (running && isListening(running) && (running.ready || age() > DOUBT_MS)) {
      try {
        const lease = await takeLease(cluster, running, deadlines)
        if (lease) return { lease, running, started: running.pid === launched?.pid }
        seen.since = Date.now()
        continue
      } catch (error) {
        if (error instanceof ForeignServer) foreignPort = running.port
        why = (error as Error).message
      }
    }
    if (launched?.failure) {
      const failure = await launched.failure()
      why = failure.why
      if (!failure.passes) break
      if (failure.isPortTaken && lost && !isReported) {
        log(`PostgreSQL: port ${lost.port} is taken by another program, waiting until it is free`)
      }
      isReported ||= failure.isPortTaken
      launched = undefined
      await setTimeout(RELAUNCH_MS)
    } else if (!launched && (!running || isReplaceable(running, age(), deadlines))) {
      launched = await launch(cluster, programs, settings, await choosePlace(running), running?.pid)
    }
  }
  const other = INCOMPATIBLE.test(why) && await readMajorVersion(cluster)
  if (other) throw new Error(explainVersion(cluster, other))
  throw new Error(`PostgreSQL does not run in ${cluster.data} (${why}): see ${cluster.log}, or set DATABASE_URL.`)

  // Nodes may still connect to the port of a server that has crashed, whose record PostgreSQL removes if that port is
  // taken.
  async function choosePlace (crashed?: Running): Promise<Place> {
    if (lost) return { port: lost.port, tcp: lost.hasTcp }
    if (!tcp) return { port: SOCKET_PORT, tcp }
    return { port: crashed?.hasTcp && crashed.port !== foreignPort ? crashed.port : await choosePort(), tcp }
  }
}

// A new major version cannot read the files of another one, and the package has the programs of one version only.
const explainVersion = ({ data }: Cluster, version: string): string =>
  `The database in ${data} was created by PostgreSQL ${version}, and this release has another version. With the release of Usher that has run ` +
  `until now, run "${PROGRAM} backup FILE". Then, with this release, choose a new DATA_DIR and run "${PROGRAM} restore FILE".`

/**
 * Returns whether a server may be launched in place of the recorded one. The launch tells PostgreSQL that the recorded
 * process is not a server, and PostgreSQL then relies only on the recorded shared memory. If that is not recorded yet,
 * the launch could replace the file of a server that is starting slowly, and no node would find that server.
 * @param age how long the record has been the same, in milliseconds
 */
export function isReplaceable (
  { pid, isComplete }: Running, age: number, { embeddedRecord }: Pick<NodeDeadlines, 'embeddedRecord'>
): boolean {
  return !isAlive(pid) || age > (isComplete ? DOUBT_MS : embeddedRecord)
}

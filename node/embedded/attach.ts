import { setTimeout } from 'node:timers/promises'
import type { Programs } from './binaries.ts'
import { isAlive, readPort, readRunning, writePort, type Cluster, type Running } from './cluster.ts'
import { launch, type Failure, type Launched } from './launch.ts'
import { ForeignServer, takeLease, type Lease } from './lease.ts'
import { choosePort } from './port.ts'

// Recovering from a crash takes a while.
const START_MS = 60_000
const POLL_MS = 10
// The pause before the next launch when the last one met a passing obstacle: each costs a process.
const RELAUNCH_MS = 100
// So long a server may be between its first file and its first answer before it is asked anyway.
const DOUBT_MS = 500
// So long a process may be without a record of its shared memory before it counts as a stranger with a reused number.
const INCOMPLETE_MS = 30_000
// So long a start waits for the recorded port: nodes that outlived the server have their connections there.
const PORT_MS = 10_000

/** Time limits in milliseconds. The defaults suit every machine; tests shorten them. */
export interface Limits {
  /** How long the server may take to answer a question before it counts as hanging. */
  readonly answerMs?: number
  /** How long a start waits for the port of the last server before it takes another one. */
  readonly portMs?: number
  /** The pause after the first failed attempt to get a lost server back. It doubles with each attempt, up to 30 s. */
  readonly retryMs?: number
}

/** What it takes to join a server, or to start one. */
export interface AttachOptions {
  readonly cluster: Cluster
  readonly programs: Programs
  readonly settings: Readonly<Record<string, string>>
  readonly limits: Limits
  readonly log: (line: string) => void
  /** Ends the attempt. A server that is already starting is waited for, so that its lease can be given back. */
  readonly signal: AbortSignal
}

/** A share in a running server. */
export interface Attachment { readonly lease: Lease, readonly port: number, readonly started: boolean }

/**
 * Joins the server that runs on the cluster, or starts one. There is no lock of ours around this: PostgreSQL ensures that
 * at most one server runs on a folder. A node that fails to start one finds the other's, and joins it.
 * @param own the only port that may be used, because the node's connections look there
 */
export async function attachToServer (entry: AttachOptions, own?: number): Promise<Attachment> {
  const { cluster, log } = entry
  const joined = await findOrLaunch(entry, own)
  if (joined.started) await writePort(cluster, joined.port).catch(({ message }) => log(`PostgreSQL: its port cannot be recorded (${message})`))
  return joined
}

async function findOrLaunch ({ cluster, programs, settings, limits, log, signal }: AttachOptions, own?: number): Promise<Attachment> {
  const port = selectPort(limits, log, own, await readPort(cluster))
  let mine: Launched | undefined
  let seen = { pid: 0, since: 0 }
  let why = 'it does not answer'
  for (const deadline = Date.now() + START_MS; Date.now() < deadline && (mine || !signal.aborted); await setTimeout(POLL_MS)) {
    const running = await readRunning(cluster)
    if (running && running.pid !== seen.pid) seen = { pid: running.pid, since: Date.now() }
    if (running) port.record(running.port)
    const age = () => Date.now() - seen.since
    if (running && (running.ready || age() > DOUBT_MS)) {
      try {
        const lease = await takeLease(cluster, running, limits.answerMs)
        if (lease) return { lease, port: running.port, started: running.pid === mine?.pid }
        seen.since = Date.now()
        continue
      } catch (error) {
        if (error instanceof ForeignServer) port.avoid(running.port)
        why = (error as Error).message
      }
    }
    if (mine?.failure) {
      const failure = await mine.failure()
      why = failure.why
      if (!failure.passes) break
      port.recordFailure(failure)
      mine = undefined
      await setTimeout(RELAUNCH_MS)
    } else if (!mine && (!running || isReplaceable(running, age()))) {
      mine = await launch(cluster, programs, settings, await port.next(), running?.pid)
    }
  }
  throw new Error(`PostgreSQL does not run in ${cluster.data} (${why}): see ${cluster.log}, or set DATABASE_URL.`)
}

/**
 * Returns whether a server may be launched in place of the recorded one. A launch declares the recorded process dead, and
 * PostgreSQL then trusts the recorded shared memory alone. Where that is not recorded yet, the launch would replace the
 * file of a server that is starting slowly, and nobody would find that server.
 * @param age how long the record has been the same, in milliseconds
 */
export function isReplaceable ({ pid, isComplete }: Running, age: number): boolean {
  return !isAlive(pid) || age > (isComplete ? DOUBT_MS : INCOMPLETE_MS)
}

// Selects the port of each launch: the node's own, else the recorded one unless it stays taken, else a new one.
function selectPort ({ portMs = PORT_MS }: Limits, log: (line: string) => void, own?: number, last?: number) {
  let [port, foreign, takenSince] = [own ?? last, 0, 0]

  return {
    // Of a server that ran before its port was recorded in a file.
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

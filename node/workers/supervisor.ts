import cluster, { type Worker } from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { NodeDeadlines } from '../process/deadlines.ts'
import { messageOf, type Order } from './messages.ts'
import { recoverConnections } from './recover-connections.ts'

// A worker that ends before it listens, or within this time after it, has failed to start.
const EARLY_MS = 1_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 30_000
// How often in a row a worker may fail to start while no other one serves.
const ATTEMPTS = 5
// How often SIGHUP tries to start a worker, with pauses of 1, 2 and 4 seconds.
const RELOAD_ATTEMPTS = 4

interface Member {
  readonly worker: Worker
  /** The port that the worker was told to listen on. */
  readonly asked: number
  /** How often in a row its predecessors have failed to start. */
  readonly failures: number
  /** Resolves with whether it listens, when it does or has ended. */
  readonly started: Promise<boolean>
  readonly ended: Promise<void>
  listensSince?: number
  /** Whether nobody takes its place when it ends. */
  isLeaving: boolean
}

export interface SupervisorOptions {
  /** How many workers serve. */
  readonly count: number
  /** The port of the settings, which may be 0. */
  readonly port: number
  /**
   * Returns the variables for a worker that listens on a port. The first worker prepares the database and tells people.
   */
  readonly environment: (port: number, isFirst: boolean) => Record<string, string>
  readonly deadlines: NodeDeadlines
  readonly log: FastifyBaseLogger
  /** Is called with a sentence if workers keep failing and none serves. */
  readonly onGiveUp: (sentence: string) => void
}

/** Keeps a number of workers serving, and replaces those that end (contract 14.1). */
export function createSupervisor ({ count, port, environment, deadlines, log, onGiveUp }: SupervisorOptions) {
  const leaveMs: Record<Order, number> = { stop: deadlines.workerStop, replace: deadlines.workerReplacement }
  const members = new Set<Member>()
  const stopping = new AbortController()
  // The workers share a listener by the port that they ask for, and the listener is closed with the last of them. Then,
  // a worker that asks for 0 would get another port than the one that clients know.
  let [asked, known] = [port, 0]
  let reloading: Promise<boolean> | undefined
  let isAskedAgain = false

  function fork ({ failures = 0, isFirst = false, isLeaving = false } = {}): Member {
    const [started, ended] = [Promise.withResolvers<boolean>(), Promise.withResolvers<void>()]
    const worker = cluster.fork(environment(asked, isFirst))
    const member: Member = { worker, asked, failures, isLeaving, started: started.promise, ended: ended.promise }
    members.add(member)
    recoverConnections(worker, () => [...members].some((other) => other !== member && isListening(other)))
    worker.once('listening', (address) => {
      known ||= address.port
      if (address.port !== known) return misplace(member)
      asked = member.asked
      member.listensSince = performance.now()
      log.info({ worker: worker.process.pid }, 'A worker listens')
      started.resolve(true)
    })
    worker.once('exit', (code, signal) => settle({ code, signal }))
    // A process that could not be started has no number, and does not exit.
    worker.on('error', (err) => { if (worker.process.pid === undefined) settle({ err }) })

    function settle (how: object): void {
      members.delete(member)
      started.resolve(false)
      ended.resolve()
      onEnd(member, how)
    }
    return member
  }

  function misplace (member: Member): void {
    asked = known
    member.worker.process.kill('SIGKILL')
  }

  function onEnd (member: Member, how: object): void {
    const details = { worker: member.worker.process.pid, ...how }
    if (stopping.signal.aborted || member.isLeaving) return log.info(details, 'A worker has ended')
    log.error(details, 'A worker has ended unexpectedly and is replaced')
    if (![...members].some(isListening)) asked = known || port
    const failures = isStable(member) ? 0 : member.failures + 1
    if (failures >= ATTEMPTS && ![...members].some(isStable)) {
      return onGiveUp(`Workers have ended ${failures} times in a row right after their start: the log says why.`)
    }
    void replaceLater(failures)
  }

  async function replaceLater (failures: number): Promise<void> {
    const duration = failures === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS)
    const isDue = await pause(duration, true, { signal: stopping.signal }).catch(() => false)
    if (isDue) fork({ failures })
  }

  // Asks a worker to finish, and kills it if it does not.
  async function dismiss (member: Member, order: Order): Promise<void> {
    member.isLeaving = true
    // A worker that is already gone gets no message, and needs none.
    member.worker.send(messageOf(order), () => {})
    const timer = setTimeout(() => {
      log.error({ worker: member.worker.process.pid }, 'A worker does not stop and is killed')
      member.worker.process.kill('SIGKILL')
    }, leaveMs[order])
    await member.ended
    clearTimeout(timer)
  }

  // A database or a pooler that is congested has no connection for a new worker, for the moment.
  async function startReplacement (): Promise<Member | undefined> {
    for (let attempt = 1; ; attempt++) {
      const next = fork({ isLeaving: true })
      if (await next.started) return next
      if (attempt === RELOAD_ATTEMPTS || stopping.signal.aborted) return undefined
      const seconds = 2 ** (attempt - 1)
      log.warn({ seconds, attempt }, 'A new worker could not start: another attempt follows')
      await pause(seconds * 1000, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  // Returns whether all are replaced.
  async function replaceAll (): Promise<boolean> {
    for (const member of [...members]) {
      if (stopping.signal.aborted) return false
      // It has ended meanwhile, and its replacement is new.
      if (!members.has(member) || member.isLeaving) continue
      const next = await startReplacement()
      if (!next) {
        log.error('The workers are not replaced, because a new one could not start. The others continue to serve')
        return false
      }
      next.isLeaving = false
      await dismiss(member, 'replace')
    }
    log.info('All workers are replaced')
    return true
  }

  return {
    /**
     * Starts the first worker, and the others when it listens. Throws an `Error` with a sentence if it cannot start.
     */
    async start (): Promise<void> {
      const isStarted = await fork({ isFirst: true, isLeaving: true }).started
      if (stopping.signal.aborted) return
      if (!isStarted) throw new Error('The first worker could not start, so the node ends.')
      for (const member of members) member.isLeaving = false
      for (let index = 1; index < count; index++) fork()
    },

    /**
     * Replaces the workers one by one, each as soon as its successor serves. A call during a replacement replaces them
     * once more. Returns whether the last replacement has succeeded.
     */
    async reload (): Promise<boolean> {
      isAskedAgain = reloading !== undefined
      return (reloading ??= (async () => {
        let isReplaced: boolean
        do {
          isAskedAgain = false
          isReplaced = await replaceAll()
        } while (isAskedAgain)
        reloading = undefined
        return isReplaced
      })())
    },

    /** Stops all workers. Resolves when they have ended. */
    async stop (): Promise<void> {
      stopping.abort()
      await Promise.all([...members].map((member) => dismiss(member, 'stop')))
    },

    /** Kills the workers that are left. */
    kill (): void {
      for (const { worker } of members) worker.process.kill('SIGKILL')
    },
  }
}

const isListening = ({ listensSince }: Member) => listensSince !== undefined

function isStable ({ listensSince, isLeaving }: Member): boolean {
  return !isLeaving && listensSince !== undefined && performance.now() - listensSince > EARLY_MS
}

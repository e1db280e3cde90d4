import type { FastifyBaseLogger } from 'fastify'
import type { NodeDeadlines } from './deadlines.ts'
import type { Messages } from '../terminal/print.ts'

// The node also stops when its terminal is closed (SIGHUP), and for supervisors that send one of the last three.
export const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGABRT'] as const
const ERRORS = ['uncaughtException', 'unhandledRejection'] as const
// Under npm, one Ctrl-C sends two signals: from the terminal and from npm, which can be slow to pass it on.
// close-with-grace would take the second one for the wish to end at once.
const SAME_SIGNAL_MS = 2_000

/** What a node that stops needs. */
export interface Stopping {
  readonly log: FastifyBaseLogger
  readonly messages: Messages
  readonly deadlines: NodeDeadlines
}

/** Stops the node, then ends the process with a code, or with 1 if the stop fails or takes too long. */
export type End = (code: number) => void

/**
 * Stops the node on the first signal or unexpected error, then ends the process: with code 0 after a signal, and with 1
 * after an error or if the stop fails or takes too long (deadline `stop`). A second signal that is no repetition of the
 * first, or a second error, ends the process at once. Returns what a signal does, for other reasons to stop.
 * @param onHangUp handles SIGHUP in place of a stop, and returns whether it has
 */
export function stopOnSignals (
  stopping: Stopping, stop: () => Promise<void>, onHangUp = () => false
): End {
  const { messages } = stopping
  let since: number | undefined
  const end = createEnd(stopping, () => {
    since ??= performance.now()
    return stop()
  })
  for (const signal of SIGNALS) process.on(signal, onSignal)
  return end

  function onSignal (signal: string): void {
    if (signal === 'SIGHUP' && since === undefined && onHangUp()) return
    if (since === undefined) {
      messages.print(`Usher stops on ${signal}`)
      end(0)
    } else if (performance.now() - since > SAME_SIGNAL_MS) {
      messages.print(`Usher ends at once on a second ${signal}`)
      process.exit(1)
    }
  }
}

/**
 * Returns a function that stops the node and ends the process, which unexpected errors call too. Only its first call
 * counts.
 */
export function createEnd (
  { log, messages, deadlines: { stop: stopMs } }: Stopping, stop: () => Promise<void>
): End {
  let isEnding = false
  messages.leaveCrashes()
  for (const event of ERRORS) process.on(event, onError)
  return (code) => { if (!isEnding) void end(code) }

  function onError (err: unknown): void {
    log.fatal({ err }, 'Unexpected error, the node stops')
    if (isEnding) process.exit(1)
    void end(1)
  }

  async function end (code: number): Promise<void> {
    isEnding = true
    setTimeout(() => process.exit(1), stopMs)
    await stop().catch((err) => {
      log.fatal({ err }, 'The node could not stop in order')
      code = 1
    })
    process.exit(code)
  }
}

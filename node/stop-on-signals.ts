import type { FastifyBaseLogger } from 'fastify'
import { print } from './print.ts'

// The node also stops when its terminal is closed (SIGHUP), and for supervisors that send one of the last three.
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGABRT'] as const
const ERRORS = ['uncaughtException', 'unhandledRejection'] as const
// Each step of a stop has its own limit: 3 seconds for clients (`node/drain.ts`), 1.5 for mail, and 30 for PostgreSQL, which
// usually takes less than a second. Cutting a step short would lose mail or leave PostgreSQL running.
const STOP_MS = 60_000
// Under npm, one Ctrl-C sends two signals: from the terminal and from npm, which can be slow to pass it on. close-with-grace would
// take the second one for the wish to end at once.
const SAME_SIGNAL_MS = 2_000

/**
 * Stops the node on the first signal or unexpected error, then ends the process: with code 0 after a signal, and with 1 after an
 * error or if the stop fails or takes longer than a minute. A second signal that is no repetition of the first, or a second error,
 * ends the process at once.
 */
export function stopOnSignals (log: FastifyBaseLogger, stop: () => Promise<void>): void {
  let since: number | undefined
  for (const signal of SIGNALS) process.on(signal, onSignal)
  for (const event of ERRORS) process.on(event, onError)

  function onSignal (signal: string): void {
    if (since === undefined) {
      print(`Usher stops on ${signal}`)
      void end(0)
    } else if (performance.now() - since > SAME_SIGNAL_MS) {
      print(`Usher ends at once on a second ${signal}`)
      process.exit(1)
    }
  }

  function onError (err: unknown): void {
    log.fatal({ err }, 'Unexpected error, the node stops')
    if (since === undefined) void end(1)
    else process.exit(1)
  }

  async function end (code: number): Promise<void> {
    since = performance.now()
    setTimeout(() => process.exit(1), STOP_MS)
    await stop().catch((err) => {
      log.fatal({ err }, 'The node could not stop in order')
      code = 1
    })
    process.exit(code)
  }
}

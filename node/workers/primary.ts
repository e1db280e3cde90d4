import { isatty } from 'node:tty'
import Fastify, { type FastifyBaseLogger } from 'fastify'
import { explain, openData, type Data } from '../data.ts'
import { multiplyNodeDeadlines, type NodeDeadlines } from '../process/deadlines.ts'
import { collectGarbage } from '../process/memory.ts'
import { explainMissingClient } from '../metrics/missing-client.ts'
import type { Messages } from '../terminal/print.ts'
import type { Shell } from '../terminal/shell.ts'
import { takeServiceManager } from '../process/service-manager.ts'
import type { Settings } from '../settings/settings.ts'
import { stopOnSignals } from '../process/stop-on-signals.ts'
import { stopWithParent } from '../process/stop-with-parent.ts'
import { waitForDatabase } from '../wait-for-database.ts'
import { poolSizeOf, workersOf } from './count.ts'
import { environmentOf } from './handover.ts'
import { createSupervisor } from './supervisor.ts'

const STDERR = 2
const NOT_REPLACED =
  'The last reload FAILED: a new worker could not start, and the others continue to serve. The log says why'

/**
 * Runs a node of several processes until a signal stops it (contract 14.1). This process owns the embedded PostgreSQL
 * and supervises the workers, each of which is a node. It does not load the service. Throws an `Error` with a sentence
 * if the node cannot start.
 *
 * @param inherited the environment without `.env`, which each worker reads itself, so that new settings apply on SIGHUP
 */
export async function runPrimary (
  settings: Settings, { messages }: Shell, inherited: NodeJS.ProcessEnv
): Promise<void> {
  for (const name of Object.keys(process.env)) if (!(name in inherited)) delete process.env[name]
  // See `run` in node/run.ts.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
  const stream = process.stdout.isTTY
    ? (await import('../terminal/pretty-log.ts')).createPrettyLog(process.stdout)
    : undefined
  const { log } = Fastify({ logger: { level: settings.LOG_LEVEL, ...stream && { stream } } })
  const workers = workersOf(settings)
  const isOnTerminal = isatty(STDERR)
  const deadlines = multiplyNodeDeadlines(settings.DEADLINE_FACTOR)
  const manager = takeServiceManager(log, deadlines)
  const stopping = new AbortController()
  const opening = waitForDatabase(settings, messages, stopping.signal)
    .then(() => openData(settings, (line) => log.info(line)))
  const serving = opening.then((data) => supervisorOf(data).start())
  let supervisor: ReturnType<typeof createSupervisor> | undefined
  const end = stopOnSignals({ log, messages, deadlines }, () => {
    stopping.abort()
    return stop()
  }, onHangUp)
  stopWithParent()
  process.on('exit', () => supervisor?.kill())
  try {
    await serving
    await serveMetrics(settings, { deadlines, log, messages })
    manager.ready(`${workers} workers serve`)
    // Most of the memory was needed to check the settings. This process hardly allocates any more, so V8 would keep it.
    collectGarbage().catch((err) => log.debug({ err }, 'The memory that only the start needed was not freed'))
  } catch (error) {
    await stop()
    // The signal that has ended the wait for the database ends the process, too.
    if (stopping.signal.aborted) return
    throw new Error(explain(error as Error, settings), { cause: error })
  }

  function supervisorOf ({ url, location, secret }: Data) {
    const poolSize = poolSizeOf(workers)
    const data = settings.DATABASE_URL ? {} : { data: { url, location, secret } }
    return (supervisor = createSupervisor({
      count: workers,
      deadlines,
      port: settings.PORT,
      environment: (port, announces) => environmentOf({ ...data, port, poolSize, workers, announces }),
      log,
      onGiveUp,
    }))
  }

  function onGiveUp (sentence: string): void {
    messages.printFailure(sentence)
    end(1)
  }

  // SIGHUP also comes from a terminal that is closed. Then nobody could stop the node with Ctrl-C any more.
  function onHangUp (): boolean {
    if (isOnTerminal && !isatty(STDERR)) return false
    log.info('The workers are replaced on SIGHUP')
    void reload()
    return true
  }

  async function reload (): Promise<void> {
    manager.reloading()
    try {
      const isReplaced = await supervisor?.reload()
      if (!stopping.signal.aborted) {
        manager.ready(isReplaced ? `${workers} workers serve, all of them replaced` : NOT_REPLACED)
      }
    } catch (err) {
      log.error({ err }, 'The workers could not be replaced')
      manager.ready(NOT_REPLACED)
    }
  }

  // The database is stopped last, because requests in flight need it.
  async function stop (): Promise<void> {
    manager.stopping()
    const data = await opening.catch(() => {})
    await supervisor?.stop()
    await data?.stop()
    await manager.sent()
  }
}

async function serveMetrics (
  { METRICS_HOST: host, METRICS_PORT: port }: Settings,
  { deadlines, log, messages }: { deadlines: NodeDeadlines, log: FastifyBaseLogger, messages: Messages }
): Promise<void> {
  if (port === undefined) return
  const { serveMetricsOfWorkers } = await import('../metrics/workers.ts').catch(explainMissingClient)
  const onError = (err: unknown) => log.error({ err }, 'The metrics could not be served')
  const { url } = await serveMetricsOfWorkers({ host, port, deadlines, onError })
  messages.print(`Metrics are at ${url}`)
}

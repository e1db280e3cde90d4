import cluster, { type Worker } from 'node:cluster'
import { settlesWithin } from '../../schema/runtime/in-time.ts'
import { NODE_DEADLINES, type NodeDeadlines } from '../process/deadlines.ts'
import { ofProcesses } from './processes.ts'
import { combine, lastingOf, toText, type PrometheusMetric } from './prometheus.ts'
import { serveText, type MetricsServer, type ServeOptions } from './server.ts'

/** The messages between the primary and its workers. */
interface Message {
  type: 'usher:read-metrics' | 'usher:metrics'
  /** The metrics of a worker. */
  metrics?: PrometheusMetric[]
}

export interface WorkersOptions extends ServeOptions {
  onError: (error: unknown) => void
}

/**
 * Serves the metrics of all workers of this process, the primary of a cluster. The first scrape waits until each worker
 * has answered once. From then on, a worker that does not answer in time counts with its last known values. What a
 * worker has counted remains when it ends, so that the counters of the node do not decrease: what it has counted since
 * the last scrape is lost only if it was killed.
 */
export async function serveMetricsOfWorkers (
  { host, port, onError, deadlines = NODE_DEADLINES }: WorkersOptions
): Promise<MetricsServer> {
  const known = new Map<number, PrometheusMetric[]>()
  const asked = new Map<number, () => void>()
  // The workers that occupy the places from 1 on.
  const places: (number | undefined)[] = []
  let ended: PrometheusMetric[] = []
  let isFirst = true

  function onMessage ({ id }: Worker, message: Message): void {
    if (message?.type !== 'usher:metrics') return
    if (!places.includes(id)) places[places.includes(undefined) ? places.indexOf(undefined) : places.length] = id
    known.set(id, message.metrics!)
    asked.get(id)?.()
  }

  function onExit ({ id }: Worker): void {
    asked.get(id)?.()
    ended = combine([ended, lastingOf(known.get(id) ?? [])])
    known.delete(id)
    if (places.includes(id)) places[places.indexOf(id)] = undefined
  }

  // Resolves with whether the worker has answered in time.
  function ask (worker: Worker): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    // Later, a worker that is just starting does not delay the others' metrics.
    const patience = isFirst && !known.has(worker.id) ? deadlines.firstMetrics : deadlines.workerMetrics
    const timer = setTimeout(resolve, patience, false)
    asked.set(worker.id, () => resolve(true))
    worker.send({ type: 'usher:read-metrics' } satisfies Message, (error) => { if (error) resolve(false) })
    return promise.finally(() => {
      clearTimeout(timer)
      asked.delete(worker.id)
    })
  }

  async function read (): Promise<string> {
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected()) as Worker[]
    const answered = await Promise.all(workers.map(ask))
    isFirst = false
    const late = answered.filter((inTime) => !inTime).length
    const processes = new Map(
      places.flatMap((id, index) => id === undefined ? [] : [[index + 1, known.get(id) ?? []] as const])
    )
    return toText([...combine([ended, ...known.values()]), ...ofProcesses(processes), gauge(
      'usher_workers', 'Processes of this node that serve', workers.length
    ),
    gauge(
      'usher_workers_late', 'Those that have not answered in time, and count with their last known values', late
    )])
  }

  cluster.on('message', onMessage).on('exit', onExit)
  const server = await serveText({ host, port, deadlines }, read, onError)
  return {
    url: server.url,
    async close () {
      await server.close()
      cluster.off('message', onMessage).off('exit', onExit)
    },
  }
}

function gauge (name: string, help: string, value: number): PrometheusMetric {
  return { name, help, type: 'gauge', aggregator: 'sum', values: [{ labels: {}, value }] }
}

/**
 * Answers the primary from a worker, and tells it the first values at once, so that it need not wait for them. Returns
 * a function that sends the last values, to be called before the worker ends.
 * @param read returns the metrics of this process
 */
export function answerPrimary (
  read: () => Promise<PrometheusMetric[]>, { lastMetrics }: NodeDeadlines = NODE_DEADLINES
): () => Promise<void> {
  process.on('message', onMessage)
  void send()

  function onMessage (message: Message): void {
    if (message?.type === 'usher:read-metrics') void send()
  }

  // Never rejects. If the primary is gone, nobody needs the metrics.
  async function send (): Promise<void> {
    try {
      const metrics = await read()
      await new Promise<void>((resolve) =>
        process.send!({ type: 'usher:metrics', metrics } satisfies Message, () => resolve()))
    } catch {}
  }

  return async () => {
    process.off('message', onMessage)
    if (process.connected) await settlesWithin(send(), lastMetrics, { ref: true })
  }
}

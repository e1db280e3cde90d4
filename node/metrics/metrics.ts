import cluster from 'node:cluster'
import fp from 'fastify-plugin'
import { ofProcesses } from './processes.ts'
import { measureProcess, toPrometheus, toText } from './prometheus.ts'
import { RequestDurations } from './request-durations.ts'
import { serveText, type ServeOptions } from './server.ts'
import { answerPrimary } from './workers.ts'

export interface MetricsOptions extends ServeOptions {
  /** Receives the address of the metrics. */
  onListen (url: string): void
  /**
   * Whether the primary of the cluster serves them. By default, if this process is a worker; one of PM2 serves its own.
   */
  isWorker?: boolean
}

/**
 * Serves the metrics of the node at /metrics (contract 14.2), on a port of their own. In a worker, it answers the
 * primary, which serves those of all workers. Register it before the routes, whose requests it counts.
 */
export default fp<MetricsOptions>(async function metrics (app, { onListen, isWorker = cluster.isWorker, ...address }) {
  const durations = new RequestDurations()
  const readProcess = measureProcess()
  app.addHook('onResponse', (request, reply, done) => {
    durations.add(request, reply)
    done()
  })

  async function read () {
    const [usher, process] = await Promise.all([app.usher.metrics(), readProcess()])
    return [...[durations.read(), ...usher].map(toPrometheus), ...process]
  }

  let close = async () => {}
  app.addHook('onClose', () => close())
  // `onClose` hooks run in reverse order, so metrics are available until everything else has closed.
  app.addHook('onReady', async () => {
    if (isWorker) {
      close = answerPrimary(read, address.deadlines)
      return
    }
    const server = await serveText(address, async () => {
      const metrics = await read()
      return toText([...metrics, ...ofProcesses(new Map([[1, metrics]]))])
    }, (err) => app.log.error({ err }, 'The metrics could not be read'))
    close = server.close
    onListen(server.url)
  })
}, { name: 'usher-metrics' })

import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import fp from 'fastify-plugin'

const LOOK_MS = 1000
// Of the event loop's time; the heartbeat of the database takes a hundredth.
const IDLE = 0.1

/**
 * Gives back what only the start needed, a quarter of the memory, in the first second in which the node has
 * nothing to do. V8 would by itself, but for the heartbeat of the database: it takes the node for busy. Once only,
 * since what load needs it will need again.
 */
export default fp(async function memory (app) {
  let before: EventLoopUtilization | undefined
  const timer = setInterval(look, LOOK_MS).unref()
  app.addHook('onReady', async () => { before = performance.eventLoopUtilization() })
  app.addHook('onClose', async () => clearInterval(timer))

  function look (): void {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > IDLE) return
    clearInterval(timer)
    Promise.allSettled([collectGarbage()]).then(([outcome]) => app.log.debug(outcome, 'What only the start needed is given back'))
  }
}, { name: 'usher-memory' })

// The one way that needs no flag of Node's; it takes tens of milliseconds.
async function collectGarbage (): Promise<void> {
  const { Session } = await import('node:inspector/promises')
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
}

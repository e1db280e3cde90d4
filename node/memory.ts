import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import fp from 'fastify-plugin'

const LOOK_MS = 1000
const LOOKS = 60
// The share of the event loop's time below which the node counts as idle. The heartbeat of the database takes much less.
const IDLE = 0.1

/**
 * Gives back what only the start needed, a quarter of the memory, in the first second in which the node has
 * nothing to do. V8 would by itself, but for the heartbeat of the database: it takes the node for busy. Once only, and
 * not on a node that has been busy since its start: what load needs it will need again, and to collect a large heap takes
 * hundreds of milliseconds, in which every request would wait.
 */
export default fp(async function memory (app) {
  let before: EventLoopUtilization | undefined
  let looks = 0
  const timer = setInterval(look, LOOK_MS).unref()
  app.addHook('onReady', async () => { before = performance.eventLoopUtilization() })
  app.addHook('onClose', async () => clearInterval(timer))

  function look (): void {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    const isIdle = utilization <= IDLE
    if (isIdle || ++looks === LOOKS) clearInterval(timer)
    if (!isIdle) return
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

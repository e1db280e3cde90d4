import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import fp from 'fastify-plugin'

const POLL_MS = 1000
const MAX_POLLS = 60
// The share of the event loop's time below which the node counts as idle. The heartbeat of the database takes much
// less.
const IDLE = 0.1
// By how much the old generation of the heap may grow before all of it is collected. By default V8 decides, and
// collects the small heap of a node with large responses several times a second, which delays other requests by tens of
// milliseconds each time.
const HEAP_GROWTH_PERCENT = 200

/**
 * Lets the heap grow more than V8 would, so that it is collected less often. Frees the memory that only the start
 * needed, a quarter of all, in the first second in which the node is idle. V8 would do this by itself, but the
 * heartbeat of the database makes it consider the node busy.
 *
 * The memory is freed once, and not on a node that has been busy for a minute since its start: such a node would soon
 * need the memory again, and collecting a large heap takes hundreds of milliseconds, during which every request would
 * wait.
 */
export default fp(async function memory (app) {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`)
  let before: EventLoopUtilization | undefined
  let polls = 0
  const timer = setInterval(poll, POLL_MS).unref()
  app.addHook('onReady', async () => { before = performance.eventLoopUtilization() })
  app.addHook('onClose', async () => clearInterval(timer))

  function poll (): void {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    const isIdle = utilization <= IDLE
    if (isIdle || ++polls === MAX_POLLS) clearInterval(timer)
    if (!isIdle) return
    Promise.allSettled([collectGarbage()])
      .then(([outcome]) => app.log.debug(outcome, 'The memory that only the start needed was freed'))
  }
}, { name: 'usher-memory' })

/**
 * Collects all garbage. This is the only way that needs no command-line flag of Node. It takes tens of milliseconds.
 */
export async function collectGarbage (): Promise<void> {
  const { Session } = await import('node:inspector/promises')
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
}

import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { median, round, slopeOf, verdict, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

// The node collects its garbage at each of these times. More frequent collections would keep its heap smaller than
// under real load. The resident memory, which depends on the largest heap so far, would then grow for the whole run.
const EVERY_MS = 10_000
const SUBSCRIBERS = 2
const STAY_MS = 2000
const GROWTH = 1.1
const MIB = 1024 * 1024
const memory = new URL('memory.ts', import.meta.url).href

interface Usage { minutes: number, rss: number, heapUsed: number, external: number }

/**
 * Measures whether the node's memory grows under continuous load of all works in turn, with subscribers that connect
 * and disconnect.
 */
export async function soak (stage: Stage): Promise<Report> {
  const { minutes, connections } = stage.options
  const keysFile = await stage.users()
  const usher = await stage.start('usher', { nodeOptions: ['--expose-gc', '--import', memory] })
  try {
    const over = new AbortController()
    const load = stage.shoot({
      url: usher.url,
      work: 'mixed',
      keysFile,
      token: await login(usher.url),
      seconds: Math.ceil(minutes * 60),
      connections,
    })
      .finally(() => over.abort())
    const [{ rate, p99, failures }, usages, messages] =
      await Promise.all([load, watch(usher, over.signal), comeAndGo(usher.url, over.signal)])
    const judged = (['rss', 'heapUsed', 'external'] as const).map((name) => ({ name, ...judge(usages, name) }))
    return {
      title: 'Memory under load',
      how: `${minutes} minutes, ${connections} connections, ${round(rate)} requests/s, p99 ${round(p99, 1)} ms, ${failures} failures, ` +
        `${messages} events to ${SUBSCRIBERS} subscribers that come and go; MiB every ${EVERY_MS / 1000} s, of the heap after a collection`,
      columns: ['memory', 'after warm-up', 'at the end', 'most', 'slope of the second half, MiB a minute', 'target'],
      rows: judged.map(({ name, early, late, most, slope }) => [
        name, round(early, 1), round(late, 1), round(most, 1), round(slope, 2),
        name === 'external' ? '' : verdict(`at most ${GROWTH} of after warm-up`, late <= early * GROWTH),
      ]),
      figures: { rate, p99, failures, messages, judged, usages },
    }
  } finally {
    await usher.stop()
  }
}

async function watch ({ process: node }: Server, signal: AbortSignal): Promise<Usage[]> {
  const usages: Usage[] = []
  const start = performance.now()
  while (!signal.aborted) {
    node.send('memory')
    const [{ rss, heapUsed, external }] = await once(node, 'message') as [NodeJS.MemoryUsage]
    usages.push({
      minutes: (performance.now() - start) / 60_000, rss: rss / MIB, heapUsed: heapUsed / MIB, external: external / MIB,
    })
    await delay(EVERY_MS, undefined, { signal }).catch(() => {})
  }
  return usages
}

// Subscribers that connect for a moment, again and again. Returns the number of messages that they received.
async function comeAndGo (url: string, signal: AbortSignal): Promise<number> {
  let messages = 0
  async function subscriber (): Promise<void> {
    while (!signal.aborted) {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
      await once(socket, 'open')
      socket.send('{"type":"connection_init"}')
      await once(socket, 'message')
      socket.on('message', () => { messages++ })
      socket.send(
        JSON.stringify({ type: 'subscribe', id: '1', payload: { query: 'subscription { postCreated { id title } }' } })
      )
      await delay(STAY_MS, undefined, { signal }).catch(() => {})
      socket.close()
      await once(socket, 'close')
    }
  }
  await Promise.all(Array.from({ length: SUBSCRIBERS }, subscriber))
  return messages
}

// The first tenth is the warm-up. Compares the tenth after it with the last one.
function judge (usages: Usage[], name: 'rss' | 'heapUsed' | 'external') {
  const tenth = (index: number) =>
    median(usages.slice(usages.length * index / 10, usages.length * (index + 1) / 10).map((usage) => usage[name]))
  return {
    early: tenth(1),
    late: tenth(9),
    most: Math.max(...usages.map((usage) => usage[name])),
    slope: slopeOf(usages.slice(usages.length / 2).map((usage) => [usage.minutes, usage[name]])),
  }
}

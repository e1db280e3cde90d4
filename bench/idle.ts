import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { ask, startClient } from './client.ts'
import { round, verdict, type Report } from './report.ts'
import type { Server } from './servers.ts'
import type { Stage } from './stage.ts'

/** The configuration of the client. */
export interface Idle { url: string, sockets: number }

const WARM_UP_SOCKETS = 500
const KIB_EACH = 20
const SETTLE_MS = 2000
const memory = new URL('memory.ts', import.meta.url).href
const names = ['rss', 'heapUsed', 'external'] as const

/** Measures the memory that an idle subscriber costs. */
export async function idle (stage: Stage): Promise<Report> {
  const { idlers: sockets } = stage.options
  const usher = await stage.start('usher', { nodeOptions: ['--expose-gc', '--import', memory] })
  try {
    await ask('idlers', { url: usher.url, sockets: WARM_UP_SOCKETS })
    const before = await look(usher)
    const client = startClient('idlers', { url: usher.url, sockets })
    try {
      await client.told
      const after = await look(usher)
      const each = names.map((name) =>
        ({ name, before: before[name], after: after[name], kib: (after[name] - before[name]) / sockets / 1024 }))
      return {
        title: 'Idle subscribers',
        how: `${sockets} sockets on one node, each with a subscription; memory after a collection, MiB, and the difference by the number of sockets`,
        columns: ['memory', 'before', 'with them', 'KiB each', 'target'],
        rows: each.map(({ name, before, after, kib }) => [
          name, round(before / 2 ** 20, 1), round(after / 2 ** 20, 1), round(kib, 1),
          name === 'external' ? '' : verdict(`≤ ${KIB_EACH} KiB each`, kib <= KIB_EACH),
        ]),
        figures: { sockets, each },
      }
    } finally {
      await client.stop()
    }
  } finally {
    await usher.stop()
  }
}

// The first request makes the node collect garbage, so the resident memory in the second response contains none.
async function look ({ process: node }: Server): Promise<NodeJS.MemoryUsage> {
  await delay(SETTLE_MS)
  await tellMemory()
  await delay(SETTLE_MS)
  return tellMemory()

  async function tellMemory (): Promise<NodeJS.MemoryUsage> {
    node.send('memory')
    const [usage] = await once(node, 'message')
    return usage
  }
}

import { once } from 'node:events'
import { ask } from './client.ts'
import { round, verdict, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

/** What the client is told. */
export interface Fanout { url: string, token: string, sockets: number, posts: number, perSecond: number }

/** What it has found; times in milliseconds since a mutation was sent. */
export interface Heard {
  /** Percentiles over all messages: each subscriber's of each post. */
  p50: number
  p99: number
  max: number
  /** Medians over the posts: when the first subscriber had it, and when the mutation was answered. */
  first: number
  answered: number
  messages: number
  lost: number
  doubled: number
  /** After one of a greater cursor. */
  disordered: number
  /** Of the client's own event loop, from 0 to 1: near 1 it is what is being measured. */
  utilization: number
}

const P99_MS = 100
const cpu = new URL('cpu.ts', import.meta.url).href

/** How long it takes until every one of many subscribers has a new post. */
export function fanout (stage: Stage): Promise<Report> {
  return measure(stage, 'Subscription fan-out', { sockets: stage.options.subscribers, posts: 50, perSecond: 5 })
}

/** The same of many posts, to fewer. */
export function flow (stage: Stage): Promise<Report> {
  return measure(stage, 'A flow of posts', { sockets: 200, posts: 10_000, perSecond: 500 })
}

async function measure (stage: Stage, title: string, load: Pick<Fanout, 'sockets' | 'posts' | 'perSecond'>): Promise<Report> {
  await stage.users()
  const usher = await stage.start('usher', { nodeOptions: ['--import', cpu] })
  try {
    let before = Promise.resolve(0)
    const heard = await ask<Heard>('subscribers', { url: usher.url, token: await login(usher.url), ...load }, () => { before = look(usher) })
    const { p50, p99, max, first, answered, messages, lost, doubled, disordered, utilization } = heard
    const each = (await look(usher) - await before) / messages
    return {
      title,
      how: `${load.sockets} sockets on one node, ${load.posts} posts, ${load.perSecond} a second; milliseconds from the mutation sent to the event received`,
      columns: ['messages', 'p50 ms', 'p99 ms', 'max ms', 'first ms', 'mutation ms', 'lost', 'doubled', 'out of order', 'node µs a message', 'client busy', 'target'],
      rows: [[
        messages, round(p50, 1), round(p99, 1), round(max, 1), round(first, 1), round(answered, 1), lost, doubled, disordered, round(each, 1), round(utilization, 2),
        verdict(`p99 ≤ ${P99_MS} ms, none lost, doubled or out of order`, p99 <= P99_MS && lost + doubled + disordered === 0),
      ]],
      figures: { ...heard, each },
    }
  } finally {
    await usher.stop()
  }
}

// Microseconds of processor time that a server has taken.
async function look ({ process: server }: Server): Promise<number> {
  server.send('cpu')
  const [{ user, system }] = await once(server, 'message') as [NodeJS.CpuUsage]
  return user + system
}

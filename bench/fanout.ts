import { ask } from './client.ts'
import { round, verdict, type Report } from './report.ts'
import { cpuOf, login, tellCpu } from './servers.ts'
import type { Stage } from './stage.ts'

/** The configuration of the client. */
export interface Fanout { url: string, token: string, sockets: number, posts: number, perSecond: number }

/** The results of the client. Times are in milliseconds since a mutation was sent. */
export interface Heard {
  /** Percentiles over all messages, which means over every post at every subscriber. */
  p50: number
  p99: number
  max: number
  /** Medians over the posts: when the first subscriber had the post, and when the mutation got its response. */
  first: number
  answered: number
  messages: number
  lost: number
  doubled: number
  /** Messages that arrived after one with a greater cursor. */
  disordered: number
  /** Utilization of the client's event loop, from 0 to 1. Near 1, the client limits the measurement. */
  utilization: number
}

const P99_MS = 100

/** Measures how long it takes until each of many subscribers has a new post. */
export function fanout (stage: Stage): Promise<Report> {
  return measure(stage, 'Subscription fan-out', { sockets: stage.options.subscribers, posts: 50, perSecond: 5 })
}

/** Measures the same with more posts per second and fewer subscribers. */
export function flow (stage: Stage): Promise<Report> {
  return measure(stage, 'A flow of posts', { sockets: 200, posts: 10_000, perSecond: 500 })
}

async function measure (
  stage: Stage, title: string, load: Pick<Fanout, 'sockets' | 'posts' | 'perSecond'>
): Promise<Report> {
  await stage.users()
  const usher = await stage.start('usher', { nodeOptions: tellCpu })
  try {
    let before = Promise.resolve(0)
    const heard = await ask<Heard>(
      'subscribers', { url: usher.url, token: await login(usher.url), ...load }, () => { before = cpuOf(usher) }
    )
    const { p50, p99, max, first, answered, messages, lost, doubled, disordered, utilization } = heard
    const each = (await cpuOf(usher) - await before) / messages
    return {
      title,
      how: `${load.sockets} sockets on one node, ${load.posts} posts, ${load.perSecond} a second; milliseconds from the mutation sent to the event received`,
      columns: [
        'messages', 'p50 ms', 'p99 ms', 'max ms', 'first ms', 'mutation ms', 'lost', 'doubled', 'out of order',
        'node µs a message', 'client busy', 'target',
      ],
      rows: [[
        messages, round(p50, 1), round(p99, 1), round(max, 1), round(first, 1), round(answered, 1), lost, doubled,
        disordered, round(each, 1), round(utilization, 2),
        verdict(
          `p99 ≤ ${P99_MS} ms, none lost, doubled or out of order`, p99 <= P99_MS && lost + doubled + disordered === 0
        ),
      ]],
      figures: { ...heard, each },
    }
  } finally {
    await usher.stop()
  }
}

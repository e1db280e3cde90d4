import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { round, verdict, type Report } from './report.ts'
import { login } from './servers.ts'
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
  /** Of the client's own event loop, from 0 to 1: near 1 it is what is being measured. */
  utilization: number
}

const P99_MS = 100
const PER_SECOND = 5
const POSTS = 50

/** How long it takes until every subscriber of new posts has one. */
export async function fanout (stage: Stage): Promise<Report> {
  const { subscribers } = stage.options
  await stage.users()
  const usher = await stage.start('usher')
  try {
    const figures = await listen({ url: usher.url, token: await login(usher.url), sockets: subscribers, posts: POSTS, perSecond: PER_SECOND })
    const { p50, p99, max, first, answered, messages, lost, doubled, utilization } = figures
    return {
      title: 'Subscription fan-out',
      how: `${subscribers} sockets on one node, ${POSTS} posts, ${PER_SECOND} a second; milliseconds from the mutation sent to the event received`,
      columns: ['messages', 'p50 ms', 'p99 ms', 'max ms', 'first ms', 'mutation ms', 'lost', 'doubled', 'client busy', 'target'],
      rows: [[
        messages, round(p50, 1), round(p99, 1), round(max, 1), round(first, 1), round(answered, 1), lost, doubled, round(utilization, 2),
        verdict(`p99 ≤ ${P99_MS} ms, none lost or doubled`, p99 <= P99_MS && lost === 0 && doubled === 0),
      ]],
      figures,
    }
  } finally {
    await usher.stop()
  }
}

async function listen (client: Fanout): Promise<Heard> {
  const script = fileURLToPath(new URL('subscribers.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(client)])
  return JSON.parse(stdout)
}

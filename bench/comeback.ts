import { ask } from './client.ts'
import { median, round, verdict, type Report } from './report.ts'
import { login } from './servers.ts'
import type { Stage } from './stage.ts'

/** The configuration of the client. */
export interface Comeback { url: string, token: string, sockets: number, missed: number, rounds: number }

/** The results of one round. Times are in milliseconds since the first socket began to open. */
export interface Returned {
  /** When the last socket was acknowledged. */
  connected: number
  /** When half of the sockets, and when the last one, had received all missed posts. */
  p50: number
  all: number
  messages: number
  /** Missed posts that did not arrive within twenty seconds of the last acknowledgement. */
  lost: number
  doubled: number
  disordered: number
}

const MISSED = 100
const ROUNDS = 5
const ALL_MS = 5000

/** Measures how long subscribers that all reconnect at once take to receive what they missed. */
export async function comeback (stage: Stage): Promise<Report> {
  const { subscribers } = stage.options
  await stage.users()
  const usher = await stage.start('usher')
  try {
    const client: Comeback = {
      url: usher.url, token: await login(usher.url), sockets: subscribers, missed: MISSED, rounds: ROUNDS,
    }
    const figures = await ask<Returned[]>('returners', client)
    const of = (name: keyof Returned) => figures.map((returned) => returned[name])
    const wrong = Math.max(...of('lost'), ...of('doubled'), ...of('disordered'))
    const all = median(of('all'))
    return {
      title: 'Coming back',
      how: `${subscribers} sockets are opened at once, each with a cursor that is ${MISSED} posts old; milliseconds from then on, medians of ${ROUNDS} rounds`,
      columns: [
        'messages', 'all connected ms', 'half caught up ms', 'all caught up ms', 'least', 'most', 'lost', 'doubled',
        'out of order', 'target',
      ],
      rows: [[
        median(of('messages')), round(median(of('connected'))), round(median(of('p50'))), round(all),
        round(Math.min(...of('all'))), round(Math.max(...of('all'))), Math.max(...of('lost')),
        Math.max(...of('doubled')), Math.max(...of('disordered')),
        verdict(`all within ${ALL_MS} ms, none lost, doubled or out of order`, all <= ALL_MS && wrong === 0),
      ]],
      figures,
    }
  } finally {
    await usher.stop()
  }
}

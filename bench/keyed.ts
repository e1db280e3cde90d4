import { measureInTurn } from './in-turn.ts'
import { round, verdict, type Report } from './report.ts'
import { login } from './servers.ts'
import type { Stage } from './stage.ts'

const AT_LEAST = 0.7
const FEW = 1000
const pairs = [['createUser', 'createUserOnce'], ['createPost', 'createPostOnce']] as const

/** Measures how much slower creating users and posts is with an idempotency key for each request. */
export async function keyed (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const schema = 'keyed'
  const keysFile = await stage.fill(schema, { users: FEW, posts: FEW })
  const server = await stage.start('usher', { schema })
  try {
    const token = await login(server.url)
    const loads = pairs.flat().map((work) => [work, { url: server.url, work, keysFile, token }] as const)
    const measured = await measureInTurn(stage, Object.fromEntries(loads))
    const figures = pairs.flatMap(([plain, once]) => [plain, once].map((work) => ({
      work, ...measured[work]!, againstPlain: measured[work]!.rate / measured[plain]!.rate,
    })))
    return {
      title: 'Writes with an idempotency key',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: ['work', 'requests/s', 'p99 ms', 'failures', 'of the rate without', 'target'],
      rows: figures.map(({ work, rate, p99, failures, againstPlain }) => [
        work, round(rate), round(p99, 1), failures, round(againstPlain, 2),
        work.endsWith('Once') ? verdict(`≥ ${AT_LEAST}`, againstPlain >= AT_LEAST) : '',
      ]),
      figures,
    }
  } finally {
    await server.stop()
  }
}

import type { Sample, Work } from './load.ts'
import { median, round, verdict, type Report } from './report.ts'
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
    const samples = new Map<Work, Sample[]>(pairs.flat().map((work) => [work, []]))
    for (let index = -1; index < rounds; index++) {
      for (const [work, ofWork] of samples) {
        const sample = await stage.shoot({ url: server.url, work, keysFile, token, seconds: index < 0 ? 2 : seconds, connections })
        if (index >= 0) ofWork.push(sample)
      }
    }
    const rate = (work: Work) => median(samples.get(work)!.map((sample) => sample.rate))
    const figures = pairs.flatMap(([plain, once]) => [plain, once].map((work) => ({
      work,
      rate: rate(work),
      p99: median(samples.get(work)!.map((sample) => sample.p99)),
      failures: samples.get(work)!.reduce((sum, sample) => sum + sample.failures, 0),
      againstPlain: rate(work) / rate(plain),
    })))
    return {
      title: 'Writes with an idempotency key',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: ['work', 'requests/s', 'p99 ms', 'failures', 'of the rate without', 'target'],
      rows: figures.map(({ work, rate, p99, failures, againstPlain }) => [
        work, round(rate), round(p99, 1), failures, round(againstPlain, 2), work.endsWith('Once') ? verdict(`≥ ${AT_LEAST}`, againstPlain >= AT_LEAST) : '',
      ]),
      figures,
    }
  } finally {
    await server.stop()
  }
}

import type { Sample } from './load.ts'
import { median, round, verdict, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

const AT_LEAST = 0.9
const FEW = 1000
// Without a limit of posts, which are not counted then, and with one that is never reached.
const limits = { unlimited: '0', counted: `${Number.MAX_SAFE_INTEGER}` }
const kinds = ['unlimited', 'counted'] as const
type Kind = typeof kinds[number]

/** Measures how much slower creating posts is while the posts of each user are counted. */
export async function quotas (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const servers = new Map<Kind, { server: Server, token: string, keysFile: string }>()
  try {
    for (const kind of kinds) {
      const schema = `quotas_${kind}`
      const keysFile = await stage.fill(schema, { users: FEW, posts: FEW })
      const server = await stage.start('usher', { schema, env: { POSTS_PER_HOUR: limits[kind] } })
      servers.set(kind, { server, keysFile, token: await login(server.url) })
    }
    const samples = new Map<Kind, Sample[]>(kinds.map((kind) => [kind, []]))
    for (let index = -1; index < rounds; index++) {
      for (const [kind, { server: { url }, token, keysFile }] of servers) {
        const sample =
          await stage.shoot({ url, work: 'createPost', keysFile, token, seconds: index < 0 ? 2 : seconds, connections })
        if (index >= 0) samples.get(kind)!.push(sample)
      }
    }
    const rate = (kind: Kind) => median(samples.get(kind)!.map((sample) => sample.rate))
    const figures = kinds.map((kind) => ({
      kind,
      rate: rate(kind),
      p99: median(samples.get(kind)!.map((sample) => sample.p99)),
      failures: samples.get(kind)!.reduce((sum, sample) => sum + sample.failures, 0),
      againstUnlimited: rate(kind) / rate('unlimited'),
    }))
    return {
      title: 'Creating posts while they are counted',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: ['posts', 'requests/s', 'p99 ms', 'failures', 'of unlimited', 'target'],
      rows: figures.map(({ kind, rate, p99, failures, againstUnlimited }) => [
        kind, round(rate), round(p99, 1), failures, round(againstUnlimited, 2),
        kind === 'counted' ? verdict(`≥ ${AT_LEAST}`, againstUnlimited >= AT_LEAST) : '',
      ]),
      figures,
    }
  } finally {
    for (const { server } of servers.values()) await server.stop()
  }
}

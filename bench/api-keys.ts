import type { Sample } from './load.ts'
import { median, round, verdict, type Report } from './report.ts'
import { cpuOf, login, tellCpu } from './servers.ts'
import type { Stage } from './stage.ts'

const AT_LEAST = 0.95
// Loaded into the server, so that it tells its CPU time, which other programs of the machine influence less than its
// rate.
const works = ['userByMember', 'protected'] as const

/** Measures how much slower requests with an API key are than those with an access token. */
export async function apiKeys (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const keysFile = await stage.users()
  const server = await stage.start('usher', { env: { READ_BY_MEMBERS: 'yes' }, nodeOptions: tellCpu })
  try {
    const { url } = server
    const token = await login(url)
    const bearers = { token, 'API key': await createKey(url, token) }
    const figures: { work: string, by: string, rate: number, p99: number, failures: number, cpu: number }[] = []
    for (const work of works) {
      const samples = Object.values(bearers).map((): (Sample & { cpu: number })[] => [])
      for (let index = -1; index < rounds; index++) {
        for (const [number, token] of Object.values(bearers).entries()) {
          const before = await cpuOf(server)
          const sample =
            await stage.shoot({ url, work, keysFile, token, seconds: index < 0 ? 2 : seconds, connections })
          const cpu = (await cpuOf(server) - before) / (sample.rate * seconds)
          if (index >= 0) samples[number]!.push({ ...sample, cpu })
        }
      }
      for (const [number, by] of Object.keys(bearers).entries()) {
        const middle = (name: 'rate' | 'p99' | 'cpu') => median(samples[number]!.map((sample) => sample[name]))
        const failures = samples[number]!.reduce((sum, { failures }) => sum + failures, 0)
        figures.push({ work, by, rate: middle('rate'), p99: middle('p99'), cpu: middle('cpu'), failures })
      }
    }
    return {
      title: 'API keys',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: [
        'work', 'by', 'requests/s', 'p99 ms', 'failures', 'CPU µs a request', 'of the rate with a token',
        'of the CPU with a token', 'target',
      ],
      rows: figures.map(({ work, by, rate, p99, failures, cpu }) => {
        const other = figures.find((figure) => figure.work === work)!
        return [
          work, by, round(rate), round(p99, 1), failures, round(cpu, 1), round(rate / other.rate, 3),
          round(cpu / other.cpu, 3), by === 'token' ? '' : verdict(`≥ ${AT_LEAST}`, rate / other.rate >= AT_LEAST),
        ]
      }),
      figures,
    }
  } finally {
    await server.stop()
  }
}

async function createKey (url: string, token: string): Promise<string> {
  const response = await fetch(`${url}/api/auth/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ name: 'Benchmark' }),
  })
  return (await response.json() as { key: string }).key
}

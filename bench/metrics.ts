import type { Sample } from './load.ts'
import { median, round, verdict, type Report } from './report.ts'
import { cpuOf, login, tellCpu, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

const AT_LEAST = 0.97
// Loaded into the server, so that it tells its CPU time, which other programs of the machine influence less than its
// rate.
const works = ['user', 'createUser'] as const

/** Measures how much slower requests are while metrics are collected and scraped. */
export async function metrics (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const keysFile = await stage.users()
  const servers: Server[] = []
  try {
    const environments: Record<string, string>[] = [{}, { METRICS: 'yes' }]
    for (const env of environments) servers.push(await stage.start('usher', { env, nodeOptions: tellCpu }))
    const token = await login(servers[0]!.url)
    const figures: {
      work: string
      metrics: boolean
      rate: number
      p99: number
      failures: number
      cpu: number
      againstNone: number
      cpuAgainstNone: number
    }[] = []
    for (const work of works) {
      const samples: (Sample & { cpu: number })[][] = [[], []]
      for (let index = -1; index < rounds; index++) {
        for (const [number, server] of servers.entries()) {
          const { url } = server
          const before = await cpuOf(server)
          const sample =
            await stage.shoot({ url, work, keysFile, token, seconds: index < 0 ? 2 : seconds, connections })
          const cpu = (await cpuOf(server) - before) / (sample.rate * seconds)
          if (index >= 0) samples[number]!.push({ ...sample, cpu })
        }
      }
      const rates = samples.map((ofServer) => median(ofServer.map((sample) => sample.rate))) as [number, number]
      const cpus = samples.map((ofServer) => median(ofServer.map((sample) => sample.cpu))) as [number, number]
      for (const [number, ofServer] of samples.entries()) {
        figures.push({
          work,
          metrics: number === 1,
          rate: rates[number]!,
          p99: median(ofServer.map((sample) => sample.p99)),
          failures: ofServer.reduce((sum, sample) => sum + sample.failures, 0),
          cpu: cpus[number]!,
          againstNone: rates[number]! / rates[0],
          cpuAgainstNone: cpus[number]! / cpus[0],
        })
      }
    }
    return {
      title: 'Metrics',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn, scraped every second`,
      columns: [
        'work', 'metrics', 'requests/s', 'p99 ms', 'failures', 'of the rate without', 'CPU µs a request',
        'of the CPU without', 'target',
      ],
      rows: figures.map(({ work, metrics, rate, p99, failures, cpu, againstNone, cpuAgainstNone }) => [
        work, metrics ? 'on' : 'off', round(rate), round(p99, 1), failures, round(againstNone, 3), round(cpu, 1),
        round(cpuAgainstNone, 3), metrics ? verdict(`≥ ${AT_LEAST}`, againstNone >= AT_LEAST) : '',
      ]),
      figures,
    }
  } finally {
    for (const server of servers) await server.stop()
  }
}

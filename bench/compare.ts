import type { Compared, Load, Sample } from './load.ts'
import { median, round, verdict, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

/** The targets, as ratios within one run: to the ceiling and to the baseline. */
const targets: Record<Compared, { ceiling?: number, baseline?: number }> = {
  user: { ceiling: 0.6, baseline: 5 },
  protected: { ceiling: 0.5, baseline: 4 },
  list: { baseline: 3 },
  graphql: { ceiling: 0.25, baseline: 4 },
  createUser: { ceiling: 0.25, baseline: 3 },
  replaceUser: { ceiling: 0.15, baseline: 3 },
  patchUser: { ceiling: 0.15, baseline: 3 },
  createPost: { ceiling: 0.25, baseline: 3 },
}

type Samples = Map<Compared, Map<string, Sample[]>>

/** Measures requests per second. Each work runs on the ceiling, the baseline and Usher in turn, in several rounds. */
export async function compare (stage: Stage, works: Compared[]): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const keysFile = await stage.users()
  const servers: Server[] = []
  try {
    for (const name of ['ceiling', 'baseline', 'usher'] as const) servers.push(await stage.start(name))
    const token = await login(servers.at(-1)!.url)
    const samples: Samples = new Map()
    for (const work of works) {
      const load = ({ url }: Server, seconds: number): Load => ({ url, work, keysFile, token, seconds, connections })
      const ofWork = new Map(servers.map(({ name }) => [name, [] as Sample[]]))
      samples.set(work, ofWork)
      for (const server of servers) await stage.shoot(load(server, 2))
      for (let round = 0; round < rounds; round++) {
        for (const server of servers) ofWork.get(server.name)!.push(await stage.shoot(load(server, seconds)))
      }
    }
    return report(samples, `${connections} connections, ${rounds} rounds of ${seconds} s`)
  } finally {
    for (const server of servers) await server.stop()
  }
}

function report (samples: Samples, how: string): Report {
  const figures = summarize(samples)
  return {
    title: 'Requests a second',
    how,
    columns: [
      'work', 'server', 'requests/s', 'min to max', 'p99 ms', 'failures', 'of the ceiling', 'of the baseline', 'target',
    ],
    rows: figures.map(({ work, server, rate, p99, failures, againstCeiling, againstBaseline }) => [
      work, server, round(rate.median), `${round(rate.min)} to ${round(rate.max)}`, round(p99, 1), failures,
      round(againstCeiling, 2), round(againstBaseline, 2),
      server === 'usher' ? judge(work, againstCeiling, againstBaseline) : '',
    ]),
    figures,
  }
}

function summarize (samples: Samples) {
  return [...samples].flatMap(([work, ofWork]) => {
    const rate = (server: string) => median(ofWork.get(server)!.map((sample) => sample.rate))
    return [...ofWork].map(([server, rounds]) => ({
      work,
      server,
      rate: {
        median: rate(server),
        min: Math.min(...rounds.map((sample) => sample.rate)),
        max: Math.max(...rounds.map((sample) => sample.rate)),
      },
      p99: median(rounds.map((sample) => sample.p99)),
      failures: rounds.reduce((sum, sample) => sum + sample.failures, 0),
      againstCeiling: rate(server) / rate('ceiling'),
      againstBaseline: rate(server) / rate('baseline'),
    }))
  })
}

function judge (work: Compared, againstCeiling: number, againstBaseline: number): string {
  const { ceiling = 0, baseline = 0 } = targets[work]
  const wanted =
    [...ceiling ? [`≥ ${ceiling} of the ceiling`] : [], ...baseline ? [`≥ ${baseline} of the baseline`] : []].join(', ')
  return verdict(wanted, againstCeiling >= ceiling && againstBaseline >= baseline)
}

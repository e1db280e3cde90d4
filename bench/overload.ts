import { encodeCursor } from '../schema/http/cursor.ts'
import { idsFrom } from './data.ts'
import type { Load, Sample, Work } from './load.ts'
import { median, round, verdict, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

/** The offered load: numbers of connections, each of which always has a request in flight. */
export const CONNECTIONS = [64, 640, 2000] as const
const [USUAL, TEN_TIMES] = CONNECTIONS
const CURSORS = 10_000
const GOODPUT = 0.9
// A request that waits longer than a second is rejected. A quarter of a second is added for the statement and the
// transfer.
const P99_MS = 1250

type Target = Pick<Load, 'url' | 'work' | 'keysFile' | 'token'> & { server: string }

/** Measures whether a node under ten and thirty times the load keeps its throughput, and how long responses take. */
export async function overload (stage: Stage): Promise<Report> {
  const { rounds, seconds } = stage.options
  const ids = await stage.users()
  const servers: Server[] = []
  try {
    for (const name of ['ceiling', 'usher'] as const) servers.push(await stage.start(name))
    const [ceiling, usher] = servers as [Server, Server]
    const token = await login(usher.url)
    const cursors = await stage.write(
      'cursors', (await idsFrom(stage.databaseUrl, 'usher', { offset: 0, limit: CURSORS })).map(encodeCursor)
    )
    const target = (work: Work, keysFile: string, { name: server, url }: Server): Target =>
      ({ server, url, work, keysFile, token })
    const figures = [
      // The cost of the connections themselves in Node.js.
      ...await measure(stage, target('user', ids, ceiling)),
      ...await measure(stage, target('user', ids, usher)),
      ...await measure(stage, target('createUser', ids, usher)),
      ...await measure(stage, target('page', cursors, usher)),
      ...await measure(stage, target('longPage', cursors, usher)),
    ]
    return {
      title: 'Overload',
      how: `one node, ${rounds} rounds of ${seconds} s in turn; goodput is answers of 2xx a second, refused are those of 503`,
      columns: [
        'work', 'server', 'connections', 'goodput/s', `of that of ${USUAL}`, 'p50 ms', 'p99 ms', 'max ms', 'refused',
        'failures', 'target',
      ],
      rows: figures.map((row) => [
        row.work, row.server, row.connections, round(row.goodput), round(row.share, 2), round(row.p50, 1),
        round(row.p99, 1), round(row.max, 1), row.refused, row.failures, row.server === 'usher' ? judge(row) : '',
      ]),
      figures,
    }
  } finally {
    for (const server of servers) await server.stop()
  }
}

type Row = Awaited<ReturnType<typeof measure>>[number]

async function measure (stage: Stage, { server, ...load }: Target) {
  const { rounds, seconds } = stage.options
  const samples = new Map(CONNECTIONS.map((connections) => [connections as number, [] as Sample[]]))
  await stage.shoot({ ...load, seconds: 2, connections: USUAL })
  for (let round = 0; round < rounds; round++) {
    for (const [connections, ofThese] of samples) {
      ofThese.push(await stage.shoot({ ...load, seconds, connections, statuses: true }))
    }
  }
  const goodputOf = (connections: number) => median(samples.get(connections)!.map(({ goodput }) => goodput))
  return [...samples].map(([connections, rounds]) => ({
    work: load.work,
    server,
    connections,
    goodput: goodputOf(connections),
    share: goodputOf(connections) / goodputOf(USUAL),
    p50: median(rounds.map(({ p50 }) => p50)),
    p99: median(rounds.map(({ p99 }) => p99)),
    max: Math.max(...rounds.map(({ max }) => max)),
    refused: rounds.reduce((sum, sample) => sum + sample.refused, 0),
    failures: rounds.reduce((sum, sample) => sum + sample.failures, 0),
  }))
}

// With thirty times the connections, only the latency has a target.
function judge ({ connections, share, p99, failures }: Row): string {
  const bounded = p99 <= P99_MS && failures === 0
  const bounds = `p99 ≤ ${P99_MS} ms, no failures`
  return connections === TEN_TIMES
    ? verdict(`≥ ${GOODPUT} of ${USUAL}, ${bounds}`, share >= GOODPUT && bounded)
    : verdict(bounds, bounded)
}

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sendAll, type Asked } from './connection.ts'
import { median, round, verdict, type Report } from './report.ts'
import { login, tellCpu, usageOf, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

// The requests of a work, and what its CPU time may be of that of the floor.
interface FloorWork { goal: number, ask: (some: () => string, token: string) => Asked }

/**
 * CPU time in microseconds: of the node, the part of it in the kernel, and of PostgreSQL (NaN where it is not known).
 */
interface Costs { node: number, kernel: number, postgres: number }

const query = 'query($id: ID!) { user(id: $id) { id name posts(first: 10) { id title } } }'
const createPost = 'mutation { createPost(input: { title: "A post", content: "Words" }) { id title } }'
let created = 0

const works: Record<string, FloorWork> = {
  user: { goal: 1.6, ask: (some) => ({ method: 'GET', path: `/api/users/${some()}` }) },
  list: { goal: 1.7, ask: () => ({ method: 'GET', path: '/api/users?role=user&limit=50' }) },
  graphql: { goal: 1.6, ask: (some) => ({ method: 'POST', path: '/graphql', body: { query, variables: { id: some() } } }) },
  createUser: {
    goal: 2,
    ask: (_, token) => ({
      method: 'POST',
      path: '/api/users',
      token,
      body: { name: 'Somebody', email: `${process.pid}.${created++}@floor.example.com` },
    }),
  },
  createPost: { goal: 2, ask: (_, token) => ({ method: 'POST', path: '/graphql', token, body: { query: createPost } }) },
}

/**
 * Measures CPU time per request, for a fixed number of requests, on the floor and on Usher in turn, after both are
 * warm. Unlike a rate it hardly depends on what else the machine does.
 */
export async function floor (stage: Stage): Promise<Report> {
  const { rounds, requests, connections } = stage.options
  const ids = (await readFile(await stage.users(), 'utf8')).split('\n')
  const some = () => ids[Math.floor(Math.random() * ids.length)]!
  const servers: Server[] = []
  try {
    for (const name of ['floor-server', 'usher'] as const) servers.push(await stage.start(name, { nodeOptions: tellCpu }))
    const token = await login(servers[1]!.url)
    const figures: Record<string, Record<string, Costs>> = {}
    for (const [work, { ask }] of Object.entries(works)) {
      const samples = new Map(servers.map(({ name }) => [name, [] as Costs[]]))
      for (let run = 0; run <= rounds; run++) {
        for (const server of run % 2 === 0 ? servers : servers.toReversed()) {
          const before = await costsOf(server, stage.dataFolder)
          await sendAll(server.url, stage.options, () => ask(some, token))
          const after = await costsOf(server, stage.dataFolder)
          // The first run is the warm-up.
          if (run > 0) samples.get(server.name)!.push(perRequest(before, after, requests))
        }
      }
      figures[work] = Object.fromEntries([...samples].map(([name, costs]) => [name, summarize(costs)]))
    }
    return report(figures, `${connections} connections, ${rounds} rounds of ${requests} requests`)
  } finally {
    for (const server of servers) await server.stop()
  }
}

async function costsOf (server: Server, dataFolder: string): Promise<Costs> {
  const { user, system } = await usageOf(server)
  return { node: user + system, kernel: system, postgres: await cpuOfPostgres(dataFolder) }
}

// In microseconds, of the server and the processes that it has now. Those of connections stay during a measurement.
async function cpuOfPostgres (dataFolder: string): Promise<number> {
  try {
    const [pid] = (await readFile(join(dataFolder, 'postmaster.pid'), 'utf8')).split('\n')
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')
    const times = await Promise.all([pid, ...children].map((id) => readFile(`/proc/${id}/schedstat`, 'utf8')))
    return times.reduce((sum, text) => sum + parseInt(text) / 1000, 0)
  } catch {
    // Only Linux has these files, and a process may just have ended.
    return NaN
  }
}

const perRequest = (before: Costs, after: Costs, requests: number): Costs => ({
  node: (after.node - before.node) / requests,
  kernel: (after.kernel - before.kernel) / requests,
  postgres: (after.postgres - before.postgres) / requests,
})

const summarize = (costs: Costs[]): Costs => ({
  node: median(costs.map(({ node }) => node)),
  kernel: median(costs.map(({ kernel }) => kernel)),
  postgres: median(costs.map(({ postgres }) => postgres)),
})

function report (figures: Record<string, Record<string, Costs>>, how: string): Report {
  return {
    title: 'CPU time of a request',
    how,
    columns: ['work', 'server', 'node µs', 'of it in the kernel', 'PostgreSQL µs', 'node ÷ floor', 'target'],
    rows: Object.entries(figures).flatMap(([work, ofWork]) =>
      Object.entries(ofWork).map(([server, { node, kernel, postgres }]) => {
        const ratio = node / ofWork['floor-server']!.node
        const { goal } = works[work]!
        return [
          work, server === 'usher' ? server : 'floor', round(node, 1), round(kernel, 1), round(postgres, 1),
          round(ratio, 2), server === 'usher' ? verdict(`≤ ${goal} of the floor`, ratio <= goal) : '',
        ]
      })),
    figures,
  }
}

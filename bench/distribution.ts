// How evenly workers get connections, by the way they share a port: `node bench/distribution.ts`. It is not a part of
// `npm run bench`. Each round opens the connections at once, and counts by the responses which worker serves each of
// them. A last round also stops a worker as node/http/drain.ts does, and counts the connections that fail.
import cluster from 'node:cluster'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { Server, type AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { median, percentile, print, round } from './report.ts'

const { values } = parseArgs({
  options: {
    serve: { type: 'string' },
    workers: { type: 'string', default: '2,4' },
    rounds: { type: 'string', default: '15' },
    connections: { type: 'string', default: '64,1000' },
  },
})
const WAYS = ['round robin', 'shared handle', 'reusePort'] as const
// What a worker does for each request, so that workers are busy for moments, as real ones are.
const WORK_MS = 0.05

if (!cluster.isPrimary) serve()
else if (values.serve) await supervise(values.serve, Number(values.workers))
else await compare()

function serve (): void {
  const reusePort = process.env['WAY'] === 'reusePort'
  const server = createServer({ keepAliveTimeout: 60_000 }, (_, response) => {
    for (const since = performance.now(); performance.now() - since < WORK_MS;);
    response.end(`${process.pid}`)
  })
  // With reusePort, the primary is not told.
  server.listen({ port: Number(process.env['PORT']), host: '127.0.0.1', reusePort }, () => process.send!('listening'))
  process.on('message', () => setImmediate(() => Server.prototype.close.call(server)))
}

async function supervise (way: string, workers: number): Promise<void> {
  cluster.schedulingPolicy = way === 'round robin' ? cluster.SCHED_RR : cluster.SCHED_NONE
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  for (let index = 0; index < workers; index++) await once(cluster.fork({ WAY: way, PORT: `${port}` }), 'message')
  process.send!(port)
  process.on('message', () => Object.values(cluster.workers!)[0]!.send('stop'))
}

async function compare (): Promise<void> {
  const rows = []
  for (const workers of values.workers.split(',').map(Number)) {
    for (const connections of values.connections.split(',').map(Number)) {
      for (const way of WAYS) rows.push(await measure(way, workers, connections))
    }
  }
  print({
    title: 'Connections by worker',
    how: `${values.rounds} rounds; ${availableParallelism()} cores, Node ${process.version}, ${process.platform}. The share of the busiest worker, of connections; even is 1 / workers`,
    columns: [
      'workers', 'connections', 'way', 'even', 'busiest, median', 'busiest, worst', 'until all were served, median ms',
      'failed as a worker stopped',
    ],
    rows,
    figures: rows,
  })
}

async function measure (way: string, workers: number, connections: number): Promise<(string | number)[]> {
  const child = fork(import.meta.filename, ['--serve', way, '--workers', `${workers}`])
  const [port] = await Promise.race([once(child, 'message'), failed(child)]) as [number]
  const [shares, durations]: number[][] = [[], []]
  for (let index = 0; index < Number(values.rounds); index++) {
    const agent = new Agent({ keepAlive: true, maxSockets: connections })
    const since = performance.now()
    const pids = await Promise.all(Array.from({ length: connections }, () => ask(agent, port)))
    durations!.push(performance.now() - since)
    const counts = Object.values(Object.groupBy(pids, (pid) => pid)).map((served) => served!.length)
    shares!.push(Math.max(...counts) / connections)
    agent.destroy()
  }
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const asked = Promise.allSettled(Array.from({ length: connections }, () => ask(agent, port)))
  child.send('stop')
  const failures = (await asked).filter(({ status }) => status === 'rejected').length
  agent.destroy()
  child.kill()
  await once(child, 'exit')
  return [
    workers, connections, way, round(1 / workers, 2), round(median(shares!), 2), round(percentile(shares!, 100), 2),
    round(median(durations!)), failures,
  ]
}

async function ask (agent: Agent, port: number): Promise<string> {
  const sent = request({ agent, port, host: '127.0.0.1' }).end()
  const [response] = await once(sent, 'response')
  return text(response)
}

async function failed (child: ChildProcess): Promise<never> {
  const [code] = await once(child, 'exit')
  throw new Error(`the server ended with ${code}`)
}

// Measures the time from the start of a node's process to its first response that needs the database, and the memory of
// the idle node. It starts everything it needs. Usage: `node bench/start.ts [--times 10] [--idle 30] [--entry
// dist/node/server.js] [--flags --max-semi-space-size=4]`.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../node/embedded/server.ts'

const TARGETS = { ms: 500, mib: 120 }
const IDLE_NODES = 3

const { values } = parseArgs({
  options: {
    times: { type: 'string', default: '10' },
    idle: { type: 'string', default: '30' },
    entry: { type: 'string', default: 'node/server.ts' },
    flags: { type: 'string', default: '' },
  },
})

interface Start {
  child: ChildProcess
  /** Milliseconds until the first response. */
  ms: number
}

const folder = await mkdtemp(join(tmpdir(), 'usher-start-'))
const database = await startEmbedded({ dataDir: folder })
const children = new Set<ChildProcess>()

try {
  // The first start creates the tables and the first admin, so it is not measured.
  await stop((await start()).child)
  const uncached = await measure(Math.min(3, Number(values.times)), { NODE_DISABLE_COMPILE_CACHE: '1' })
  const cached = await measure(Number(values.times))
  const nodes = await Promise.all(Array.from({ length: IDLE_NODES }, () => start()))
  const before = nodes.map(({ child }) => mibOf(child))
  await delay(Number(values.idle) * 1000)
  const after = nodes.map(({ child }) => mibOf(child))
  console.log(
    `${values.entry}, ${cpus().length} cores, Node ${process.version}, ${values.times} starts; medians (least to most)`
  )
  print('first answer, ms', cached, TARGETS.ms)
  print('first answer without a compile cache, ms', uncached)
  print('memory after the first answer, MiB', before)
  print(`memory after ${values.idle} s of idling, MiB`, after, TARGETS.mib)
} finally {
  for (const child of children) await stop(child)
  await database.stop()
  await rm(folder, { recursive: true, force: true })
}

async function measure (times: number, env: Record<string, string> = {}): Promise<number[]> {
  const found: number[] = []
  for (let time = 0; time < times; time++) {
    const { child, ms } = await start(env)
    found.push(ms)
    await stop(child)
  }
  return found
}

/** Starts a node and requests a user as soon as it listens. */
async function start (env: Record<string, string> = {}): Promise<Start> {
  const since = performance.now()
  const child = spawn(process.execPath, [...values.flags.split(' ')
    .filter(Boolean), resolve(import.meta.dirname, '..', values.entry)], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      PORT: '0',
      DATABASE_URL: database.url,
      DATA_DIR: folder,
      LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  children.add(child)
  const { status } = await fetch(`${await urlOf(child)}/api/users?limit=1`)
  if (status !== 200) throw new Error(`the first answer has status ${status}`)
  return { child, ms: performance.now() - since }
}

async function urlOf (child: ChildProcess): Promise<string> {
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr! })) {
    const url = /listens on ([^\s"]+)/.exec(line)?.[1]
    if (url) return url
    said.push(line)
  }
  throw new Error(`the node did not start: ${said.join('\n')}`)
}

async function stop (child: ChildProcess): Promise<void> {
  children.delete(child)
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

function mibOf ({ pid }: ChildProcess): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`], { encoding: 'utf8' })) / 1024
}

function print (what: string, figures: readonly number[], target?: number): void {
  const sorted = figures.toSorted((a, b) => a - b)
  const [median, least, most] =
    [sorted[Math.floor(sorted.length / 2)]!, sorted[0]!, sorted.at(-1)!].map(Math.round) as [number, number, number]
  const verdict = target === undefined ? '' : `  target ${target}: ${median < target ? 'met' : 'MISSED'}`
  console.log(`${what.padEnd(45)} ${`${median}`.padStart(5)} (${least} to ${most})${verdict}`)
}

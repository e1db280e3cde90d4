import { once } from 'node:events'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { SMTPServer } from 'smtp-server'
import type { Sql } from 'postgres'
import { createClient } from '../db/driver/client.ts'
import { startClient } from './client.ts'
import type { LongRunGiven, LongRunTold } from './long-run-clients.ts'
import { median, round, slopeOf, type Report } from './report.ts'
import type { Stage } from './stage.ts'

const EVERY_MS = 10_000
const MIB = 1024 * 1024
const SERVER = fileURLToPath(new URL('../node/server.ts', import.meta.url))
const MEMORY_FILE = new URL('memory-file.ts', import.meta.url).href
const ADMIN = { email: 'admin@example.com', password: 'horse battery staple' }
const SCHEMA = 'usher'
// Sessions that are left and links expire within the run, so that what deletes them runs as well.
const SHORT = { ACCESS_TOKEN_SECONDS: '300', SESSION_IDLE_SECONDS: '600', PASSWORD_TOKEN_SECONDS: '300' }

/** What is expected of a value that is sampled. */
interface Kind {
  unit: 'MiB' | 'number'
  /** How much more than 10 % it may grow, in its unit: what one more allocation of its owner takes. */
  tolerance: number
  /** Compares maxima rather than medians: for what a periodic clean-up lowers. */
  compares?: 'maxima'
}

const MEMORY: Kind = { unit: 'MiB', tolerance: 8 }
const COUNT: Kind = { unit: 'number', tolerance: 10 }
const SIZE: Kind = { unit: 'MiB', tolerance: 1 }
const WAL: Kind = { unit: 'MiB', tolerance: 128 }
const DEAD: Kind = { unit: 'number', tolerance: 2000, compares: 'maxima' }
const FOLDER: Kind = { unit: 'MiB', tolerance: 8 }
const GROWTH = 1.1

// Tables that grow until their retention, which is longer than a run.
const BY_DESIGN: Record<string, string> = {
  audit: 'account log, kept for a year',
  idempotency_keys: 'results of keyed requests, kept for a day',
}

interface Sample { minutes: number, pids: number[], values: Record<string, number> }

interface Judged {
  name: string
  kind: Kind
  early: number
  late: number
  most: number
  /** By the regression line of the second half, per hour. */
  slope: number
  byDesign: string | undefined
  grows: boolean
}

/**
 * Measures what grows in a node of several workers, in its database and in its folder, while users do everything that
 * the API offers at a fixed rate.
 */
export async function longRun (stage: Stage): Promise<Report> {
  const { minutes, rate, workers, json } = stage.options
  const walFolder = join(stage.dataFolder, 'pg_wal')
  const folder = await mkdtemp(join(tmpdir(), 'usher-long-run-'))
  const sql = createClient(stage.databaseUrl, { max: 1, onnotice: () => {} })
  const receivers = await startReceivers()
  const node = await startNode(stage, folder, receivers)
  try {
    const over = new AbortController()
    const given: LongRunGiven = { url: node.url, minutes, rate, admin: ADMIN }
    const clients = startClient<LongRunTold>('long-run-clients', given)
    const samples: Sample[] = []
    const sampling = sampleRegularly(over.signal, async (minute) => {
      const values = { ...await sampleDatabase(sql), ...await sampleFolders(join(folder, 'uploads'), walFolder) }
      const sample = await takeSample(node.pid, join(folder, 'memory'), minute, values)
      samples.push(sample)
      if (json) await appendFile(`${json}.samples`, `${JSON.stringify(sample)}\n`)
    })
    const [told] = await Promise.all([clients.told.finally(() => over.abort()), sampling]).finally(() => clients.stop())
    const judged = judgeAll(samples)
    const replaced = new Set(samples.flatMap(({ pids }) => pids)).size - workers - 1
    const failures = Object.entries(told.failures)
    return {
      title: `A long run with ${workers} workers`,
      how: `${minutes} minutes, ${told.requests} requests (${round(told.requests / minutes / 60)} a second), ` +
        `p50 ${round(told.p50, 1)} ms, p99 ${round(told.p99, 1)} ms, ${told.messages} messages to subscribers, ` +
        `${receivers.counts.webhooks} webhooks, ${receivers.counts.mails} mails, ${replaced} workers replaced, ` +
        `${node.logged.size} kinds of warnings and errors in the log, ` +
        `${failures.reduce((sum, [, { count }]) => sum + count, 0)} failures` +
        failures.map(([what, { count, example }]) => `\n- ${count} × ${what}: ${example.slice(0, 200)}`).join('') +
        [...node.logged].map(([line, count]) => `\n- logged ${count} ×: ${line}`).join(''),
      columns: ['', 'unit', 'after warm-up', 'at the end', 'most', 'slope of the second half, an hour', 'verdict'],
      rows: judged.filter(isWorthShowing).map(({ name, kind, early, late, most, slope, byDesign, grows }) => [
        name, kind.unit, round(early, 1), round(late, 1), round(most, 1), round(slope, 1),
        grows ? byDesign === undefined ? 'GROWS' : `grows by design: ${byDesign}` : 'bounded',
      ]),
      figures: { told, judged, samples, logged: [...node.logged] },
    }
  } finally {
    await node.stop()
    await receivers.stop()
    await sql.end()
    await rm(folder, { recursive: true, force: true })
  }
}

// Tables that stay empty say nothing.
const isWorthShowing = ({ kind, most, grows }: Judged) => grows || (kind === DEAD ? most > 1000 : most >= 0.1)

interface Receivers {
  webhookUrl: string
  smtpUrl: string
  counts: { webhooks: number, mails: number }
  stop (): Promise<void>
}

/** Starts servers that accept all events and all mails. */
async function startReceivers (): Promise<Receivers> {
  const counts = { webhooks: 0, mails: 0 }
  const web = createServer((request, response) => {
    counts.webhooks++
    request.resume().on('end', () => response.writeHead(204).end())
  })
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData (stream, _, done) {
      counts.mails++
      stream.resume().on('end', () => done())
    },
  })
  web.listen(0, '127.0.0.1')
  const mails = smtp.listen(0, '127.0.0.1')
  await Promise.all([once(web, 'listening'), once(mails, 'listening')])
  const portOf = (server: { address (): unknown }) => (server.address() as AddressInfo).port
  return {
    webhookUrl: `http://127.0.0.1:${portOf(web)}/`,
    smtpUrl: `smtp://127.0.0.1:${portOf(mails)}`,
    counts,
    async stop () {
      web.close()
      web.closeAllConnections()
      await new Promise<void>((resolve) => smtp.close(() => resolve()))
    },
  }
}

/** Starts a node as its operators do, with everything that is optional and has a part in what accumulates. */
async function startNode ({ databaseUrl, options }: Stage, folder: string, { webhookUrl, smtpUrl }: Receivers) {
  await mkdir(join(folder, 'memory'))
  const child = spawn(process.execPath, [SERVER], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      NODE_OPTIONS: `--import ${MEMORY_FILE}`,
      MEMORY_DIR: join(folder, 'memory'),
      WORKERS: `${options.workers}`,
      PORT: '0',
      METRICS_PORT: '0',
      DATABASE_URL: databaseUrl,
      DATA_DIR: folder,
      SECRET: 'a secret of the long run',
      TRUST_PROXY: 'loopback',
      PUBLIC_URL: 'http://127.0.0.1',
      ADMIN_EMAIL: ADMIN.email,
      ADMIN_PASSWORD: ADMIN.password,
      SMTP_URL: smtpUrl,
      MAIL_FROM: 'usher@example.com',
      WEBHOOK_URL: webhookUrl,
      WEBHOOK_SECRET: `whsec_${Buffer.alloc(24, 'usher').toString('base64')}`,
      WEBHOOK_ALLOW_PRIVATE: 'true',
      POSTS_PER_HOUR: '0',
      ...SHORT,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const logged = new Map<string, number>()
  const listening = Promise.withResolvers<string>()
  let metrics: string | undefined
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on('line', (line) => {
      const { level, msg = line, err } = parse(line)
      metrics = /Metrics are at (\S+)/.exec(msg)?.[1] ?? metrics
      const url = /listens on (\S+)/.exec(msg)?.[1]
      if (url) listening.resolve(url)
      if (level === undefined || level < 40) return
      const text = `${msg}${err ? `: ${err.message}` : ''}`
      logged.set(text, (logged.get(text) ?? 0) + 1)
    })
  }
  const exit = once(child, 'exit')
  exit.then(() => listening.reject(new Error('the node ended before it listened')), listening.reject)
  const scraper = setInterval(() => {
    if (metrics) fetch(metrics).then((response) => response.text(), () => {})
  }, EVERY_MS)
  return {
    url: await listening.promise,
    pid: child.pid!,
    logged,
    async stop () {
      clearInterval(scraper)
      child.kill('SIGTERM')
      await exit
    },
  }
}

function parse (line: string): { level?: number, msg?: string, err?: { message: string } } {
  return line.startsWith('{"level":') ? JSON.parse(line) : {}
}

async function sampleRegularly (signal: AbortSignal, sample: (minutes: number) => Promise<void>): Promise<void> {
  const start = performance.now()
  while (!signal.aborted) {
    await sample((performance.now() - start) / 60_000)
    await delay(EVERY_MS, undefined, { signal }).catch(() => {})
  }
}

async function takeSample (
  primary: number, memory: string, minutes: number, values: Record<string, number>
): Promise<Sample> {
  const children = await readFile(`/proc/${primary}/task/${primary}/children`, 'utf8')
  const pids = [primary, ...children.trim().split(' ').filter(Boolean).map(Number)]
  const processes = await Promise.all(pids.map((pid, index) =>
    sampleProcess(pid, index === 0 ? 'primary' : `worker ${index}`, memory)))
  return { minutes, pids, values: Object.assign({}, ...processes, values) }
}

async function sampleProcess (pid: number, name: string, memory: string): Promise<Record<string, number>> {
  const files = await readdir(`/proc/${pid}/fd`).catch(() => [])
  // A process that has just started has written no file.
  const text = await readFile(join(memory, `${pid}.json`), 'utf8').catch(() => undefined)
  const usage = text === undefined ? undefined : JSON.parse(text) as NodeJS.MemoryUsage
  return {
    [`${name}: open files`]: files.length,
    ...usage && {
      [`${name}: rss`]: usage.rss / MIB,
      [`${name}: heapUsed`]: usage.heapUsed / MIB,
      [`${name}: external`]: usage.external / MIB,
    },
  }
}

async function sampleDatabase (sql: Sql): Promise<Record<string, number>> {
  const [totals] = await sql<{ connections: number, idle: number, database: number }[]>`
    select
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      (select count(*)::int from pg_stat_activity where state like 'idle in transaction%') as idle,
      pg_database_size(current_database())::float8 as database`
  const tables = await sql<{ name: string, size: number, dead: number }[]>`
    select relname as name, pg_table_size(relid)::float8 as size, n_dead_tup::float8 as dead
    from pg_stat_user_tables where schemaname = ${SCHEMA}`
  const indexes = await sql<{ name: string, table: string, size: number }[]>`
    select indexrelname as name, relname as "table", pg_relation_size(indexrelid)::float8 as size
    from pg_stat_user_indexes where schemaname = ${SCHEMA}`
  return {
    'PostgreSQL: connections': totals!.connections,
    'PostgreSQL: idle in transaction': totals!.idle,
    'PostgreSQL: database': totals!.database / MIB,
    ...Object.fromEntries(tables.flatMap(({ name, size, dead }) =>
      [[`table ${name}`, size / MIB], [`dead rows of ${name}`, dead]])),
    ...Object.fromEntries(indexes.map(({ name, table, size }) => [`index ${table}.${name}`, size / MIB])),
  }
}

async function sampleFolders (uploads: string, wal: string): Promise<Record<string, number>> {
  const [stored, log] = [await sumUp(uploads), await sumUp(wal)]
  return {
    'uploads: files': stored.files, 'uploads: bytes': stored.bytes / MIB, 'PostgreSQL: WAL': log.bytes / MIB,
  }
}

async function sumUp (folder: string): Promise<{ files: number, bytes: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile())
  // Some are deleted meanwhile.
  const sizes = await Promise.all(files.map(({ parentPath, name }) =>
    stat(join(parentPath, name)).then(({ size }) => size, () => 0)))
  return { files: files.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}

function kindOf (name: string): Kind {
  if (/: (rss|heapUsed|external)$/.test(name)) return MEMORY
  if (name === 'PostgreSQL: WAL') return WAL
  if (name.startsWith('dead rows')) return DEAD
  if (/^(table|index|PostgreSQL: database)/.test(name)) return SIZE
  return name === 'uploads: bytes' ? FOLDER : COUNT
}

function byDesignOf (name: string): string | undefined {
  if (name === 'PostgreSQL: database') return 'the tables below'
  const table = /^(?:table|index|dead rows of) (\w+)/.exec(name)?.[1]
  return table === undefined ? undefined : BY_DESIGN[table]
}

function judgeAll (samples: Sample[]): Judged[] {
  const names = Object.keys(samples.at(-1)!.values)
  return names.map((name) => {
    const points = samples.filter(({ values }) => values[name] !== undefined)
      .map(({ minutes, values }): [number, number] => [minutes, values[name]!])
    return judge(name, points)
  })
}

// The first tenth is the warm-up. A value grows if it is more than 10 % greater in the last tenth than in the one after
// the warm-up, and still rises in the second half: the regression line gains more than 2 % there.
function judge (name: string, points: [minutes: number, value: number][]): Judged {
  const kind = kindOf(name)
  const between = (from: number, to: number) =>
    points.slice(points.length * from, points.length * to).map(([, value]) => value)
  const [early, late] = kind.compares === 'maxima'
    ? [Math.max(...between(0.1, 0.55)), Math.max(...between(0.55, 1))]
    : [median(between(0.1, 0.2)), median(between(0.9, 1))]
  const second = points.slice(points.length / 2)
  const slope = slopeOf(second) * 60
  const gain = slope / 60 * (second.at(-1)![0] - second[0]![0])
  return {
    name,
    kind,
    early,
    late,
    most: Math.max(...points.map(([, value]) => value)),
    slope,
    byDesign: byDesignOf(name),
    grows: late > early * GROWTH + kind.tolerance && gain > 0.02 * late,
  }
}

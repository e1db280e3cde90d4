import type { Options } from './options.ts'
import { Findings, kinds, type Counts, type Kind } from './findings.ts'
import type { GeneratorConfiguration } from './generator.ts'
import { startHelper, type Helper } from './helpers.ts'
import { checkAcknowledged, checkLeftovers, openInvariants, type Breach } from './invariants.ts'
import { watchMemory, type Memory } from './memory-watch.ts'
import { fetchOperations } from './operations.ts'
import { prepareWorld, readSigningKey } from './prepare.ts'
import type { ProbeConfiguration, Stalls } from './probe.ts'
import type { Stage } from './stage.ts'

const CHECK_MS = 5000
const STALL_MS = 50

/** The results of a run. */
export interface Result {
  readonly seed: number
  readonly requests: number
  readonly seconds: number
  readonly statuses: Counts['statuses']
  readonly counted: Partial<Record<Kind, number>>
  readonly violations: Counts['violations']
  readonly stalls: Stalls
  readonly memory: Memory
  /** The part of the time for which the main thread of the node was busy; undefined if the node crashed. */
  readonly load: number | undefined
  readonly stop: { code: number | NodeJS.Signals, took: number }
}

/** Attacks a node with a number of requests. Checks the node's promises during the attack and after it. */
export async function fuzz (stage: Stage, options: Options): Promise<Result> {
  const { node, sql } = stage
  const world = await prepareWorld(stage)
  const key = await readSigningKey(sql)
  const operations = await fetchOperations(node.url)
  const checkInvariants = await openInvariants(stage, world)
  const openFiles = await node.openFiles()
  // Log lines of the preparation do not count.
  node.logged.clear()
  node.warnings.length = 0

  const control = startHelper('trivial-server.ts', { nice: false })
  control.send({})
  const { port } = await control.receive<{ port: number }>('listening')
  const probe = startHelper('probe.ts', { nice: false })
  probe.send({
    target: node.target, control: { host: '127.0.0.1', port }, userId: world.readers[0]!,
  } satisfies ProbeConfiguration)
  const stopWatching = watchMemory(node)

  const busyBefore = await node.processorSeconds()
  const since = performance.now()
  const generators = Array.from({ length: options.workers }, (_, index) => {
    const generator = startHelper('generator.ts')
    generator.send({
      target: node.target,
      seed: options.seed,
      index,
      lanes: options.lanes,
      requests: Math.ceil(options.requests / options.workers),
      rate: options.rate / options.workers,
      only: options.only,
      without: options.without,
      world,
      key,
      operations,
    } satisfies GeneratorConfiguration)
    return generator
  })
  const seen = new Map<string, Breach>()
  const checks = watchInvariants(generators, () => node.crashes.length, checkInvariants, seen)
  let counts: Counts[]
  try {
    counts = await Promise.all(
      generators.map(async (generator) => (await generator.receive<{ counts: Counts }>('done')).counts)
    )
  } finally {
    stopWatching()
    await checks.stop()
  }
  const seconds = (performance.now() - since) / 1000
  const memory = stopWatching()
  const busyAfter = await node.processorSeconds()
  const load = node.crashes.length > 0 || busyBefore === undefined || busyAfter === undefined
    ? undefined
    : (busyAfter - busyBefore) / seconds

  probe.send({})
  const { stalls } = await probe.receive<{ stalls: Stalls }>('stalls')
  const total = new Findings()
  for (const part of counts) add(total, part)
  const acknowledged = await Promise.all(counts.map((part) => checkAcknowledged(stage, part.acknowledged)))
  const leftovers = await checkLeftovers(stage, openFiles)
  for (const breach of [...await checkInvariants(), ...acknowledged.flat(), ...leftovers]) {
    seen.set(breach.detail, breach)
  }
  for (const { kind, detail } of seen.values()) total.violation(kind, 'checks', detail)
  judgeNode(total, stage, stalls, memory)
  const stop = await node.stop()
  if (stop.code !== 0) total.violation('crash', 'stop', `SIGTERM ended the node with ${stop.code}`)
  return { seed: options.seed, seconds, stalls, memory, load, stop, ...total.summarize() }
}

/** Repeats the checks of the database, and stops the generators if the node crashes again and again. */
function watchInvariants (
  generators: readonly Helper[], crashes: () => number, check: () => Promise<Breach[]>, seen: Map<string, Breach>
) {
  let isStopped = false
  const progress = new Map<Helper, number>()
  for (const generator of generators) {
    generator.child.on('message', ({ type, requests }: { type: string, requests: number }) => {
      if (type === 'progress') progress.set(generator, requests)
    })
  }
  const stopping = Promise.withResolvers<void>()
  const ended = (async () => {
    for (;;) {
      let timer: NodeJS.Timeout | undefined
      await Promise.race([stopping.promise, new Promise<void>((resolve) => { timer = setTimeout(resolve, CHECK_MS) })])
      clearTimeout(timer)
      if (isStopped) return
      for (const breach of await check()) seen.set(breach.detail, breach)
      const requests = [...progress.values()].reduce((sum, count) => sum + count, 0)
      process.stderr.write(`\r${requests} requests, ${crashes()} crashes, ${seen.size} breaches found in the database `)
      if (crashes() > 20) for (const generator of generators) generator.send({})
    }
  })()
  return {
    async stop () {
      isStopped = true
      stopping.resolve()
      await ended
      process.stderr.write('\n')
    },
  }
}

function add (total: Findings, { requests, statuses, violations, counted }: Counts): void {
  total.counts.requests += requests
  for (const [attack, found] of Object.entries(statuses)) {
    const sums = (total.counts.statuses[attack] ??= {})
    for (const [status, count] of Object.entries(found)) sums[status] = (sums[status] ?? 0) + count
  }
  total.counts.violations.push(...violations)
  for (const kind of Object.keys(kinds) as Kind[]) {
    if (counted[kind]) total.counts.counted[kind] = (total.counts.counted[kind] ?? 0) + counted[kind]
  }
}

function judgeNode (total: Findings, { node }: Stage, stalls: Stalls, memory: Memory): void {
  for (const crash of node.crashes) total.violation('crash', 'node', crash.slice(-500), crash)
  for (const [line, { count, example }] of node.logged) {
    if (!isExpected(line)) total.violation('log', 'node', `${count} times: ${line}`, example)
  }
  for (const line of new Set(node.warnings)) total.violation('log', 'node', line)
  for (const { longest, at, path, overLimit, requests } of [stalls.starting, stalls.started]) {
    const found =
      `${longest.toFixed(0)} ms at ${at.toFixed(1)} s on GET ${path}; ${overLimit} of ${requests} requests over ${STALL_MS} ms`
    if (longest > STALL_MS) total.violation('stall', 'probe', found)
  }
  if (!memory.isFlat) {
    total.violation(
      'memory', 'node', `grows from ${memory.inUse.early.toFixed(0)} to ${memory.inUse.late.toFixed(0)} MiB in use`
    )
  }
}

// Load shedding is expected: if there is more work than the node can do within a second, it is rejected with 503 and
// logged. The node also logs once that there is no mailer.
const isExpected = (line: string) => /^50 The server is busy|there is no mailer/.test(line)

import { setTimeout as delay } from 'node:timers/promises'
import { median, percentile } from '../../../bench/report.ts'
import { channelOf } from '../../../db/driver/channel.ts'
import { startHelper } from '../helpers.ts'
import { chooseNames, type Options } from '../options.ts'
import { prepareWorld, readSigningKey } from '../prepare.ts'
import type { Stage } from '../stage.ts'
import { attacks } from './attacks.ts'
import { P99, RAMP_MS, startReady, tellAll, THROUGHPUT } from './index.ts'
import type { Mailbox } from './mailbox.ts'
import type { NormalConfiguration } from './normal-users.ts'
import type { Origin, Place } from './origins.ts'
import type { Asked, AttackerConfiguration, Phase, Sample } from './phases.ts'
import type { ProbeConfiguration } from './probes.ts'

// How long a mail may take after the end of a phase.
const MAIL_MS = 3000
// What honest users elsewhere get of what they ask for, at least.
const SERVED = 0.95

type Under = 'quiet' | Origin

/** What honest users of one place have got who did one thing, in the rounds of one kind of phase. */
export interface Served {
  readonly under: Under
  readonly place: Place
  readonly kind: string
  readonly asked: number
  readonly good: number
  readonly p50: number
  readonly p99: number
  /** Milliseconds until the mail arrived, if there is one. */
  readonly mailP50: number | undefined
  /** How often each other outcome occurred. */
  readonly others: Record<string, number>
}

export interface NetworksResult {
  readonly holds: boolean
  readonly networks: number
  readonly normal: readonly { under: Under, sample: Sample }[]
  /** What normal users keep, by origin: medians of the rounds, compared with the quiet phase of the same round. */
  readonly ratios: Readonly<Partial<Record<Origin, { throughput: number, p50: number, p99: number }>>>
  readonly served: readonly Served[]
  readonly crashes: readonly string[]
  readonly logged: readonly (readonly [string, number])[]
}

/**
 * Measures the effect of all attacks at once on honest users of other networks and of the same /48, depending on the
 * number of networks that the attacks come from. The node is behind a proxy.
 */
export async function fromNetworks (
  { node, sql, ...stage }: Stage, mailbox: Mailbox,
  { users, slow, seconds, rounds: count, seed, from, networks, ...choice }: Options
): Promise<NetworksResult> {
  const chosen = chooseNames(Object.keys(attacks), choice)
  const world = await prepareWorld({ node, sql, ...stage })
  const key = await readSigningKey(sql)
  const decoy = startHelper('combined/decoy.ts')
  decoy.send({})
  const { port } = await decoy.receive<{ port: number }>('listening')
  const attackers = await Promise.all(chosen.map((attack) => startReady(
    'combined/attackers.ts', { attack, slow, networks, longWinded: world.longWinded } satisfies AttackerConfiguration
  )))
  const normal = await startReady(
    'combined/normal-users.ts', { users, seed, world, key, isProxied: true } satisfies NormalConfiguration, { nice: false }
  )
  const probes = await startReady(
    'combined/probes.ts', { world, key, port: node.target.port } satisfies ProbeConfiguration, { nice: false }
  )

  async function measure (under: Under): Promise<{ under: Under, sample: Sample, asked: Asked[] }> {
    await forget()
    const attacked = under === 'quiet' ? port : node.target.port
    const origin = under === 'quiet' ? 'unrelated' : under
    await tellAll(attackers, { type: 'attack', port: attacked, origin })
    await delay(RAMP_MS)
    const phase: Phase = { type: 'measure', port: node.target.port, seconds }
    normal.send(phase)
    probes.send(phase)
    const [{ sample }, { asked }] = await Promise.all([
      normal.receive<{ sample: Sample }>('sample'), probes.receive<{ asked: Asked[] }>('asked'),
    ])
    await delay(MAIL_MS)
    await tellAll(attackers, { type: 'pause', port: attacked })
    process.stderr.write('.')
    return { under, sample, asked }
  }

  // Each phase begins with limits of which nothing is used, and with nothing pending.
  async function forget (): Promise<void> {
    for (const table of ['throttle', 'mail_limits', 'login_failures', 'sign_ups', 'login_links', 'outbox']) {
      await sql`delete from ${sql(table)}`
    }
    await sql`select pg_notify(${channelOf('usher', 'limits_cleared')}, '')`
  }

  const phases: { under: Under, sample: Sample, asked: Asked[] }[] = []
  // The first, discarded phase lets V8 compile the code.
  await measure('quiet')
  for (let round = 0; round < count; round++) {
    for (const under of ['quiet', ...from] as const) phases.push(await measure(under))
  }
  const of = (under: Under) => phases.filter((phase) => phase.under === under)
  const ratioOf = (origin: Origin, value: (sample: Sample) => number) =>
    median(of(origin).map(({ sample }, round) => value(sample) / value(of('quiet')[round]!.sample)))
  const ratios = Object.fromEntries(from.map((origin) => [origin, {
    throughput: ratioOf(origin, ({ good }) => good),
    p50: ratioOf(origin, ({ p50 }) => p50),
    p99: ratioOf(origin, ({ p99 }) => p99),
  }]))
  const served = (['quiet', ...from] as const)
    .flatMap((under) => sumUp(under, of(under).flatMap(({ asked }) => asked), mailbox.arrivals))
  return {
    holds: node.crashes.length === 0 &&
      Object.values(ratios).every(({ throughput, p99 }) => throughput >= THROUGHPUT && p99 <= P99) &&
      served.every(({ place, asked, good }) => place !== 'elsewhere' || good >= SERVED * asked),
    networks,
    normal: phases.map(({ under, sample }) => ({ under, sample })),
    ratios,
    served,
    crashes: [...node.crashes],
    logged: [...node.logged].map(([line, { count }]) => [line, count]),
  }
}

function sumUp (under: Under, all: readonly Asked[], arrivals: ReadonlyMap<string, number>): Served[] {
  const groups = Map.groupBy(all, ({ place, kind }) => `${place} ${kind}`)
  return [...groups.values()].map((group) => {
    const { place, kind } = group[0]!
    const latencies = group.flatMap(({ latencies }) => latencies)
    const mails = group.flatMap(({ mails }) => mails)
    const arrived = mails.flatMap(({ to, since }) => arrivals.has(to) ? [arrivals.get(to)! - since] : [])
    const outcomes: Record<string, number> = {}
    for (const asked of group) {
      for (const [outcome, times] of Object.entries(asked.outcomes)) {
        outcomes[outcome] = (outcomes[outcome] ?? 0) + times
      }
    }
    const { good = 0, ...others } = outcomes
    if (arrived.length < mails.length) others['no mail'] = mails.length - arrived.length
    return {
      under,
      place,
      kind,
      asked: latencies.length,
      good: good + arrived.length,
      p50: percentile(latencies, 50),
      p99: percentile(latencies, 99),
      mailP50: arrived.length > 0 ? median(arrived) : undefined,
      others,
    }
  })
}

export function printNetworks ({ holds, networks, normal, ratios, served, crashes, logged }: NetworksResult): void {
  console.log(`\nnormal users, ${networks} networks of attackers\n`)
  console.log('| phase | good/s | failures | p50 ms | p99 ms | longest ms |\n|---|---:|---|---:|---:|---:|')
  for (const { under, sample: { good, seconds, failures, p50, p99, longest } } of normal) {
    console.log(
      `| ${under} | ${(good / seconds).toFixed(0)} | ${list(failures)} | ${p50.toFixed(1)} | ${p99.toFixed(1)} | ${longest.toFixed(0)} |`
    )
  }
  console.log('\n| attack from | throughput | p50 | p99 |\n|---|---:|---:|---:|')
  for (const [origin, { throughput, p50, p99 }] of Object.entries(ratios)) {
    console.log(`| ${origin} | ${throughput.toFixed(2)} | ${p50.toFixed(2)} | ${p99.toFixed(2)} |`)
  }
  for (const place of new Set(served.map((one) => one.place))) {
    console.log(`\nhonest users: ${place}\n\n| | attack from | served | p50 ms | p99 ms | mail ms | otherwise |\n|---|---|---:|---:|---:|---:|---|`)
    const of = served.filter((one) => one.place === place).toSorted((a, b) => a.kind.localeCompare(b.kind))
    for (const { kind, under, asked, good, p50, p99, mailP50, others } of of) {
      console.log(
        `| ${kind} | ${under} | ${good} of ${asked} | ${p50.toFixed(0)} | ${p99.toFixed(0)} | ${mailP50?.toFixed(0) ?? ''} | ${list(others)} |`
      )
    }
  }
  for (const [line, count] of logged) console.log(`logged ${count} ×: ${line}`)
  for (const crash of crashes) console.log(`\n--- crash: ${crash.slice(-1500)}`)
  console.log(`\ncrashes: ${crashes.length}\n${holds ? 'held' : 'VIOLATED'}`)
}

const list = (counts: Record<string, number>) =>
  Object.entries(counts).map(([what, count]) => `${what}: ${count}`).join(', ')

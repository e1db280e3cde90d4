import { setTimeout as delay } from 'node:timers/promises'
import { median } from '../../../bench/report.ts'
import { startHelper, type Helper } from '../helpers.ts'
import { chooseNames, type Options } from '../options.ts'
import { prepareWorld, readSigningKey } from '../prepare.ts'
import type { Stage } from '../stage.ts'
import { attacks } from './attacks.ts'
import type { NormalConfiguration } from './normal-users.ts'
import type { AttackerConfiguration, Phase, Sample } from './phases.ts'

/** What normal users keep of their throughput, and how many times the quiet p99 they may have. */
export const THROUGHPUT = 0.9
export const P99 = 3
/** The time that the attackers need to open their connections. */
export const RAMP_MS = 3000

/** The samples of normal users, from quiet and attacked phases in turn. */
export interface CombinedResult {
  readonly holds: boolean
  readonly rounds: readonly { quiet: Sample, attacked: Sample }[]
  readonly throughput: number
  readonly p99: number
  readonly crashes: readonly string[]
  readonly memory: readonly number[]
}

/**
 * Measures the effect of all attacks at once on normal users. The phases differ only in what the attack costs the node.
 */
export async function combined (
  { node, ...stage }: Stage, { users, slow, seconds, rounds: count, seed, ...choice }: Options
): Promise<CombinedResult> {
  const chosen = chooseNames(Object.keys(attacks).filter((name) => !attacks[name]!.isProxied), choice)
  const world = await prepareWorld({ node, ...stage })
  const key = await readSigningKey(stage.sql)
  const decoy = startHelper('combined/decoy.ts')
  decoy.send({})
  const { port } = await decoy.receive<{ port: number }>('listening')
  const attackers = await Promise.all(chosen.map((attack) =>
    startReady(
      'combined/attackers.ts', { attack, slow, longWinded: world.longWinded, networks: 1 } satisfies AttackerConfiguration
    )))
  const normal = await startReady(
    'combined/normal-users.ts', { users, seed, world, key, isProxied: false } satisfies NormalConfiguration, { nice: false }
  )

  async function measure (attacked: number): Promise<Sample> {
    await tellAll(attackers, { type: 'attack', port: attacked })
    await delay(RAMP_MS)
    normal.send({ type: 'measure', port: node.target.port, seconds } satisfies Phase)
    const { sample } = await normal.receive<{ sample: Sample }>('sample')
    await tellAll(attackers, { type: 'pause', port: attacked })
    process.stderr.write('.')
    return sample
  }

  const rounds: { quiet: Sample, attacked: Sample }[] = []
  const memory: number[] = []
  // The first, discarded phase lets V8 compile the code.
  await measure(port)
  for (let round = 0; round < count; round++) {
    rounds.push({ quiet: await measure(port), attacked: await measure(node.target.port) })
    memory.push(await node.residentMemory() ?? 0)
  }
  const ratio = (of: (sample: Sample) => number) =>
    median(rounds.map(({ quiet, attacked }) => of(attacked) / of(quiet)))
  const [throughput, p99] = [ratio((sample) => sample.good), ratio((sample) => sample.p99)]
  return {
    holds: throughput >= THROUGHPUT && p99 <= P99 && node.crashes.length === 0,
    rounds,
    throughput,
    p99,
    crashes: [...node.crashes],
    memory,
  }
}

export function printCombined ({ holds, rounds, throughput, p99, crashes, memory }: CombinedResult): void {
  console.log('\n| phase | good/s | failures | p50 ms | p99 ms | longest ms |\n|---|---:|---|---:|---:|---:|')
  for (const round of rounds) {
    for (const [phase, { good, seconds, failures, p50, p99, longest }] of Object.entries(round)) {
      const failed = Object.entries(failures).map(([what, count]) => `${what}: ${count}`).join(', ')
      console.log(
        `| ${phase} | ${(good / seconds).toFixed(0)} | ${failed} | ${p50.toFixed(1)} | ${p99.toFixed(1)} | ${longest.toFixed(0)} |`
      )
    }
  }
  console.log(`
throughput: ${throughput.toFixed(2)} of the quiet one (at least ${THROUGHPUT}), p99: ${p99.toFixed(2)} times the quiet one (at most ${P99}); medians of the rounds
memory after each round: ${memory.map((mib) => mib.toFixed(0)).join(', ')} MiB; crashes: ${crashes.length}
${holds ? 'held' : 'VIOLATED'}`)
  for (const crash of crashes) console.log(`\n--- crash: ${crash.slice(-1500)}`)
}

export async function startReady (file: string, configuration: object, options?: { nice: boolean }): Promise<Helper> {
  const helper = startHelper(file, options)
  helper.send(configuration)
  await helper.receive('ready')
  return helper
}

export async function tellAll (helpers: readonly Helper[], phase: Phase): Promise<void> {
  await Promise.all(helpers.map((helper) => {
    helper.send(phase)
    return helper.receive('ready')
  }))
}

// This process attacks the node over many lanes at once. Each lane is a sequence of attacks.
import { setTimeout as delay } from 'node:timers/promises'
import { Cast, type World } from './actors.ts'
import { Lane, type Shared } from './context.ts'
import { Findings } from './findings.ts'
import { chooseAttacks } from './fuzz/index.ts'
import { readConfiguration, report } from './helpers.ts'
import { NodeIsDown, type Target } from './http-connection.ts'
import type { Operation } from './operations.ts'
import { deriveSeed, Random } from './random.ts'
import { TokenFactory, type SigningKey } from './tokens.ts'

/** The configuration of a generator. */
export interface GeneratorConfiguration {
  readonly target: Target
  readonly seed: number
  readonly index: number
  readonly lanes: number
  readonly requests: number
  /**
   * The number of requests per second. If the node were constantly busy, the probe would measure its queue instead of
   * stalls.
   */
  readonly rate: number
  readonly only: string[]
  readonly without: string[]
  readonly world: World
  readonly key: SigningKey
  readonly operations: Operation[]
}

const PROGRESS_MS = 1000
const RECONNECT_MS = 50
// If too few requests were sent, at most this much time is caught up.
const MADE_UP_MS = 20

const configuration = await readConfiguration<GeneratorConfiguration>()
const { target, seed, index, requests, rate, world, key, operations } = configuration
const findings = new Findings()
const attacks = chooseAttacks(configuration)
const shared: Shared = {
  target, cast: new Cast(world, new TokenFactory(key)), findings, operations, expendable: [], posts: [], uploads: [],
}
let due = performance.now()
let turns = 0
const stopping = new AbortController()
process.on('message', () => stopping.abort())
const progress = setInterval(() => report({ type: 'progress', requests: findings.counts.requests }), PROGRESS_MS)
await Promise.all(Array.from({ length: configuration.lanes }, (_, lane) => runLane(lane)))
clearInterval(progress)
report({ type: 'done', counts: findings.summarize() })

async function runLane (number: number): Promise<void> {
  const lane = new Lane(shared, `127.1.${index + 1}.${number + 1}`, new Random(0))
  for (let turn = 0; findings.counts.requests < requests && !stopping.signal.aborted; turn++) {
    await pace()
    // Each turn has its own seed, so its random numbers do not depend on earlier responses.
    lane.random = new Random(deriveSeed(seed, index, number, turn))
    const attack = lane.random.pickWeighted(attacks)
    try {
      await attack.run(lane)
    } catch (error) {
      if (!(error instanceof NodeIsDown)) {
        throw new Error(`${attack.name}, lane ${number}, turn ${turn}`, { cause: error })
      }
      await delay(RECONNECT_MS)
    }
  }
  await lane.close()
}

// A turn takes as long as the average number of requests per turn at the configured rate. Delays through a stall are
// not caught up, because the probe would measure the burst.
async function pace (): Promise<void> {
  const now = performance.now()
  const perTurn = turns === 0 ? 1 : findings.counts.requests / turns
  turns++
  due = Math.max(due, now - MADE_UP_MS) + perTurn * 1000 / rate
  if (due > now) await delay(due - now)
}

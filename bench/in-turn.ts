import type { Load, Sample } from './load.ts'
import { median } from './report.ts'
import type { Stage } from './stage.ts'

const WARM_UP_SECONDS = 2

/** The medians over all rounds, except `failures`, which is the sum. Latencies are in milliseconds. */
export interface Figures { rate: number, p50: number, p99: number, failures: number }

/**
 * Measures loads in turn, so that whatever else the machine does affects all of them alike. Returns the figures of
 * each.
 *
 * @param loads what to measure, by name. Where `connections` is absent, the option of the benchmark applies
 */
export async function measureInTurn<Name extends string> (
  stage: Stage, loads: Readonly<Record<Name, Omit<Load, 'seconds' | 'connections'> & { connections?: number }>>
): Promise<Record<Name, Figures>> {
  const { rounds, seconds, connections } = stage.options
  const all = Object.entries(loads) as [Name, typeof loads[Name]][]
  const samples = new Map<Name, Sample[]>(all.map(([name]) => [name, []]))
  for (const [, load] of all) await stage.shoot({ connections, ...load, seconds: WARM_UP_SECONDS })
  for (let round = 0; round < rounds; round++) {
    for (const [name, load] of all) samples.get(name)!.push(await stage.shoot({ connections, ...load, seconds }))
  }
  return Object.fromEntries([...samples].map(([name, ofName]) => [name, summarize(ofName)])) as Record<Name, Figures>
}

function summarize (samples: readonly Sample[]): Figures {
  const middle = (name: 'rate' | 'p50' | 'p99') => median(samples.map((sample) => sample[name]))
  return {
    rate: middle('rate'),
    p50: middle('p50'),
    p99: middle('p99'),
    failures: samples.reduce((sum, { failures }) => sum + failures, 0),
  }
}

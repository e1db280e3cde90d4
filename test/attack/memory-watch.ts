import type { NodeUnderAttack } from './node-under-attack.ts'

export interface Memory { readonly start: number, readonly peak: number, readonly end: number, readonly mibPerMinute: number, readonly isFlat: boolean, readonly seconds: number }

const EVERY_MS = 1000
// A shorter run says nothing about growth: a heap grows to its working size first.
const JUDGED_SECONDS = 120
const GROWTH = 1.15
const GROWTH_MIB = 48

/** Samples the node's resident memory every second, until the function that it returns is called. */
export function watchMemory (node: NodeUnderAttack): () => Memory {
  const samples: { at: number, mib: number, pid: number }[] = []
  const since = performance.now()
  const timer = setInterval(async () => {
    const mib = await node.residentMemory()
    if (mib !== undefined) samples.push({ at: (performance.now() - since) / 1000, mib, pid: node.pid })
  }, EVERY_MS)

  return () => {
    clearInterval(timer)
    // Only the last process: one that crashed took its memory along.
    const own = samples.filter(({ pid }) => pid === node.pid)
    const values = own.map(({ mib }) => mib)
    const seconds = (own.at(-1)?.at ?? 0) - (own[0]?.at ?? 0)
    const [early, late] = [median(values.slice(values.length >> 2, values.length >> 1)), median(values.slice(-Math.max(1, values.length >> 2)))]
    return {
      start: values[0] ?? 0,
      peak: samples.reduce((most, { mib }) => Math.max(most, mib), 0),
      end: values.at(-1) ?? 0,
      mibPerMinute: slopeOf(own.slice(own.length >> 2)) * 60,
      isFlat: seconds < JUDGED_SECONDS || late <= Math.max(early * GROWTH, early + GROWTH_MIB),
      seconds,
    }
  }
}

function median (values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}

/** The slope of the least-squares line, in MiB per second. */
function slopeOf (samples: readonly { at: number, mib: number }[]): number {
  const mean = (of: (sample: { at: number, mib: number }) => number) => samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length
  const [at, mib] = [mean((sample) => sample.at), mean((sample) => sample.mib)]
  const spread = samples.reduce((sum, sample) => sum + (sample.at - at) ** 2, 0)
  return spread > 0 ? samples.reduce((sum, sample) => sum + (sample.at - at) * (sample.mib - mib), 0) / spread : 0
}

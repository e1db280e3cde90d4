import type { NodeUnderAttack } from './node-under-attack.ts'

/** All values are in MiB. */
export interface Memory {
  /** The resident memory, including garbage and free pages of the heap. */
  readonly resident: { readonly start: number, readonly peak: number, readonly end: number }
  /** Memory in use after full garbage collections: the medians of the second and of the last quarter of the run. */
  readonly inUse: { readonly early: number, readonly late: number }
  /** Whether the memory in use does not grow. */
  readonly isFlat: boolean
}

const EVERY_MS = 1000
// In a shorter run growth means little, because a heap first grows to its working size.
const JUDGED_MS = 120_000
const GROWTH = 1.15
const GROWTH_MIB = 32

/**
 * Samples the node's memory every second until the returned function is called. Resident memory says little about
 * growth: V8 lets garbage accumulate while the heap is far from its limit.
 */
export function watchMemory (node: NodeUnderAttack): () => Memory {
  const samples: { resident: number, inUse: number | undefined, pid: number }[] = []
  const timer = setInterval(async () => {
    const resident = await node.residentMemory()
    if (resident !== undefined) samples.push({ resident, inUse: node.memoryInUse, pid: node.pid })
  }, EVERY_MS)

  return () => {
    clearInterval(timer)
    // Only samples of the last process count, because a crash releases the memory of a process.
    const own = samples.filter(({ pid }) => pid === node.pid)
    const inUse = own.map((sample) => sample.inUse).filter((mib) => mib !== undefined)
    const early = median(inUse.slice(inUse.length >> 2, inUse.length >> 1))
    const late = median(inUse.slice(-Math.max(1, inUse.length >> 2)))
    return {
      resident: {
        start: own[0]?.resident ?? 0,
        peak: samples.reduce((most, { resident }) => Math.max(most, resident), 0),
        end: own.at(-1)?.resident ?? 0,
      },
      inUse: { early, late },
      isFlat: own.length * EVERY_MS < JUDGED_MS || late <= Math.max(early * GROWTH, early + GROWTH_MIB),
    }
  }
}

function median (values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}

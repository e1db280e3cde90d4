import type { RegisterOperation, Violation } from './history.ts'

/** All operations on one value: the write, and the reads that returned it. */
interface Cluster {
  readonly write: RegisterOperation
  readonly operations: readonly RegisterOperation[]
  /** The earliest end and the latest start of these operations. */
  readonly earliestEnd: number
  readonly latestStart: number
}

/**
 * Returns what contradicts that each register is one value which changes at one moment between the start and the end of
 * a write, and which every read returns as it is at one moment between its start and its end (linearizability).
 *
 * Since written values are unique, Gibbons and Korach's theorem ("Testing Shared Memories", 1997) decides it without a
 * search: a history is linearizable exactly if no value is read before its write begins, no two forward zones overlap,
 * and no backward zone lies within a forward one.
 *
 * A write that failed may have happened or not. If so, it did before the end of any acknowledged write that began
 * afterwards: otherwise it would undo that one (contract 1.11).
 */
export function checkRegisters (operations: readonly RegisterOperation[]): Violation[] {
  const byRegister =
    Map.groupBy(operations.filter(({ kind, status }) => kind === 'write' || status === 200), ({ register }) => register)
  return [...byRegister.values()].flatMap(checkRegister)
}

function checkRegister (operations: readonly RegisterOperation[]): Violation[] {
  const writes = operations.filter(({ kind }) => kind === 'write')
  const reads = Map.groupBy(operations.filter(({ kind }) => kind === 'read'), ({ value }) => value)
  const written = new Set(writes.map(({ value }) => value))
  const violations: Violation[] = []
  for (const [value, [read]] of reads) {
    if (!written.has(value)) violations.push({ rule: 'a value was read that nobody wrote', evidence: read })
  }

  const clusters: Cluster[] = []
  for (const write of writes) {
    const readers = reads.get(write.value) ?? []
    if (write.status !== 200 && readers.length === 0) continue
    for (const read of readers) {
      if (read.end < write.start) {
        violations.push({ rule: 'a value was read before it was written', evidence: { write, read } })
      }
    }
    const cluster = [{ ...write, end: write.status === 200 ? write.end : latestEffect(write, writes) }, ...readers]
    clusters.push({
      write,
      operations: cluster,
      earliestEnd: Math.min(...cluster.map(({ end }) => end)),
      latestStart: Math.max(...cluster.map(({ start }) => start)),
    })
  }
  return [...violations, ...checkZones(clusters)]
}

function latestEffect (failed: RegisterOperation, writes: readonly RegisterOperation[]): number {
  // If the connection failed, the client got no response, and the node may still execute the write at any time.
  if (failed.status === 0) return Infinity
  return Math.min(...writes.filter(({ status, start }) => status === 200 && start > failed.end).map(({ end }) => end))
}

function checkZones (clusters: readonly Cluster[]): Violation[] {
  // In a forward zone the register has the zone's value the whole time.
  const forward = clusters.filter(({ earliestEnd, latestStart }) => earliestEnd < latestStart)
    .sort((one, other) => one.earliestEnd - other.earliestEnd)
  const backward = clusters.filter(({ earliestEnd, latestStart }) => earliestEnd >= latestStart)
  const violations: Violation[] = []
  forward.forEach((zone, index) => {
    const before = forward[index - 1]
    if (before && before.latestStart > zone.earliestEnd) {
      violations.push({ rule: 'two values were current at the same time', evidence: [explain(before), explain(zone)] })
    }
    for (const inner of backward) {
      if (inner.latestStart <= zone.earliestEnd || inner.earliestEnd >= zone.latestStart) continue
      violations.push({
        rule: 'a value was written and never current, or an older one came back',
        evidence: [explain(zone), explain(inner)],
      })
    }
  })
  return violations
}

/** Returns the operations that define the bounds of a zone. */
function explain ({ write, operations, earliestEnd, latestStart }: Cluster): object {
  return {
    write,
    endsFirst: operations.find(({ end }) => end === earliestEnd),
    startsLast: operations.find(({ start }) => start === latestStart),
  }
}

import { kinds, type Kind } from './findings.ts'
import type { Result } from './fuzzer.ts'

const EXAMPLES = 3

/** Prints the results of a run. */
export function printResult (
  { seed, requests, seconds, statuses, counted, violations, stalls, memory, load, stop }: Result
): void {
  console.log(
    `\nseed ${seed}: ${requests} requests in ${seconds.toFixed(0)} s (${(requests / seconds).toFixed(0)} a second)\n`
  )
  console.log('| attack | responses |\n|---|---|')
  for (const [attack, found] of Object.entries(statuses)) {
    console.log(
      `| ${attack} | ${Object.entries(found).sort(([, a], [, b]) => b - a).map(([status, count]) => `${status}: ${count}`).join(', ')} |`
    )
  }
  console.log('\n| looked for | found | verdict |\n|---|---:|---|')
  for (const [kind, title] of Object.entries(kinds)) {
    const count = counted[kind as Kind] ?? 0
    console.log(`| ${title} | ${count} | ${count === 0 ? 'held' : 'VIOLATED'} |`)
  }
  const mib = (value: number) => value.toFixed(0)
  const { starting, started, p50, p99, noise } = stalls
  console.log(`
longest stall ${started.longest.toFixed(1)} ms, and ${starting.longest.toFixed(1)} in the first five seconds
probe: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)}, ${stalls.requests} requests; the machine alone: up to ${noise.toFixed(1)} ms
main thread of the node: busy for ${load === undefined ? 'an unknown part' : `${(load * 100).toFixed(0)} %`} of the time
memory in use after full garbage collections: ${mib(memory.inUse.early)} MiB in the second quarter of the run, ${mib(memory.inUse.late)} in the last one
resident memory ${mib(memory.resident.start)} MiB at the start, ${mib(memory.resident.peak)} at most, ${mib(memory.resident.end)} at the end
stopped with ${stop.code} within ${stop.took.toFixed(0)} ms`)
  for (const kind of Object.keys(kinds) as Kind[]) printExamples(kind, violations)
}

// The first violations of each attack are more informative than many of the same attack.
function printExamples (kind: Kind, violations: Result['violations']): void {
  const shown = new Map<string, number>()
  for (const { attack, detail, request } of violations.filter((violation) => violation.kind === kind)) {
    const count = (shown.get(attack) ?? 0) + 1
    shown.set(attack, count)
    if (count > EXAMPLES) continue
    console.log(`\n--- ${kind}, ${attack}: ${detail}`)
    if (request !== undefined) console.log(JSON.stringify(request.slice(0, 700)))
  }
}

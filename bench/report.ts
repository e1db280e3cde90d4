import type { Sample, Work } from './load.ts'

interface Row {
  work: Work
  server: string
  /** Requests a second: the median of the rounds, the least and the most. */
  rate: { median: number, min: number, max: number }
  /** Milliseconds, the median of the rounds. */
  p99: number
  failures: number
  /** The median against that of the other in the same run. */
  againstCeiling: number
  againstBaseline: number
}

/** The targets, as ratios within one run: against the ceiling, against the baseline. */
const targets: Record<Work, { ceiling?: number, baseline?: number }> = {
  user: { ceiling: 0.6, baseline: 5 },
  protected: { ceiling: 0.5, baseline: 4 },
  list: { baseline: 3 },
  graphql: { ceiling: 0.25, baseline: 4 },
  createUser: { ceiling: 0.25, baseline: 3 },
  createPost: { ceiling: 0.25, baseline: 3 },
}

export function summarize (samples: Map<Work, Map<string, Sample[]>>): Row[] {
  return [...samples].flatMap(([work, ofWork]) => {
    const rate = (server: string) => median(ofWork.get(server)!.map((sample) => sample.rate))
    return [...ofWork].map(([server, rounds]) => ({
      work,
      server,
      rate: { median: rate(server), min: Math.min(...rounds.map((sample) => sample.rate)), max: Math.max(...rounds.map((sample) => sample.rate)) },
      p99: median(rounds.map((sample) => sample.p99)),
      failures: rounds.reduce((sum, sample) => sum + sample.failures, 0),
      againstCeiling: rate(server) / rate('ceiling'),
      againstBaseline: rate(server) / rate('baseline'),
    }))
  })
}

export function print (rows: Row[], how: string): void {
  console.log(`\n${how}\n`)
  console.log('| work | server | requests/s | min to max | p99 ms | failures | of the ceiling | of the baseline | target |')
  console.log('|---|---|---:|---|---:|---:|---:|---:|---|')
  for (const { work, server, rate, p99, failures, againstCeiling, againstBaseline } of rows) {
    console.log(`| ${[
      work, server, Math.round(rate.median), `${Math.round(rate.min)} to ${Math.round(rate.max)}`, p99.toFixed(1), failures,
      againstCeiling.toFixed(2), againstBaseline.toFixed(2), server === 'usher' ? verdict(work, againstCeiling, againstBaseline) : '',
    ].join(' | ')} |`)
  }
}

function verdict (work: Work, againstCeiling: number, againstBaseline: number): string {
  const { ceiling = 0, baseline = 0 } = targets[work]
  const wanted = [...ceiling ? [`≥ ${ceiling} of the ceiling`] : [], ...baseline ? [`≥ ${baseline} of the baseline`] : []].join(', ')
  return `${wanted}: ${againstCeiling >= ceiling && againstBaseline >= baseline ? 'met' : 'not met'}`
}

function median (values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** What a part of the benchmark has found. */
export interface Report {
  title: string
  /** How it was measured, in a line. */
  how: string
  columns: string[]
  /** Numbers stand on the right. */
  rows: (string | number)[][]
  /** All of it, for programs. */
  figures: unknown
}

export function print ({ title, how, columns, rows }: Report): void {
  console.log(`\n## ${title}\n\n${how}\n`)
  console.log(line(columns))
  console.log(`|${columns.map((_, index) => typeof rows[0]![index] === 'number' ? '---:' : '---').join('|')}|`)
  for (const row of rows) console.log(line(row))
}

const line = (cells: (string | number)[]) => `| ${cells.join(' | ')} |`

/** A target with whether it was met. */
export const verdict = (target: string, met: boolean): string => `${target}: ${met ? 'met' : 'not met'}`

/** A number with so many digits after the point. */
export const round = (value: number, digits = 0): number => Number(value.toFixed(digits))

export const median = (values: ArrayLike<number>): number => percentile(values, 50)

/** By the nearest rank; of an even number of values the median is the mean of the two in the middle. */
export function percentile (values: ArrayLike<number>, percent: number): number {
  const sorted = Float64Array.from(values).sort()
  const rank = sorted.length * percent / 100
  if (percent === 50 && Number.isInteger(rank)) return (sorted[rank - 1]! + sorted[rank]!) / 2
  return sorted[Math.ceil(rank) - 1]!
}

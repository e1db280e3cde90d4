/** The results of one part of the benchmark. */
export interface Report {
  title: string
  /** One line about how it was measured. */
  how: string
  columns: string[]
  /** Numbers are right-aligned. */
  rows: (string | number)[][]
  /** All results, for programs. */
  figures: unknown
}

export function print ({ title, how, columns, rows }: Report): void {
  console.log(`\n## ${title}\n\n${how}\n`)
  console.log(line(columns))
  console.log(`|${columns.map((_, index) => typeof rows[0]![index] === 'number' ? '---:' : '---').join('|')}|`)
  for (const row of rows) console.log(line(row))
}

const line = (cells: (string | number)[]) => `| ${cells.join(' | ')} |`

/** Returns a target with whether it was met. */
export const verdict = (target: string, met: boolean): string => `${target}: ${met ? 'met' : 'not met'}`

/** Returns a number with the given number of decimal places. */
export const round = (value: number, digits = 0): number => Number(value.toFixed(digits))

export const median = (values: ArrayLike<number>): number => percentile(values, 50)

/**
 * Returns a percentile by the nearest rank. For an even number of values the median is the mean of the two in the
 * middle.
 */
export function percentile (values: ArrayLike<number>, percent: number): number {
  const sorted = Float64Array.from(values).sort()
  const rank = sorted.length * percent / 100
  if (percent === 50 && Number.isInteger(rank)) return (sorted[rank - 1]! + sorted[rank]!) / 2
  return sorted[Math.ceil(rank) - 1]!
}

/** Returns the slope of the regression line (least squares). */
export function slopeOf (points: [x: number, y: number][]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))]
  return mean(points.map((point) => (point[0] - x) * (point[1] - y))) / mean(points.map((point) => (point[0] - x) ** 2))
}

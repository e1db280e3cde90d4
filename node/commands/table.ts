import { printable } from '../terminal/print.ts'

/** Returns rows as columns of the same width, below their headings. */
export function formatTable (headings: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [headings, ...rows.map((row) => row.map((cell) => printable(`${show(cell)}`)))]
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd()).join('\n')
}

/** Returns the members of a record, one per line. */
export function formatRecord (record: Readonly<Record<string, unknown>>): string {
  const width = Math.max(...Object.keys(record).map((name) => name.length)) + 2
  return Object.entries(record)
    .map(([name, value]) => `${name.padEnd(width)}${printable(show(value))}`.trimEnd()).join('\n')
}

function show (value: unknown): string {
  if (value instanceof Date) return value.toISOString().replace(/\.\d+Z$/, 'Z')
  if (value === null || value === undefined) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return String(value)
}

/** A page of a keyset list. It may be shared by several requests, and is not to be changed. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  /** The id of the last row, where another page follows it. */
  readonly next: string | null
}

/** Makes a page of rows that were asked for with one more than its limit. */
export function toPage<Row extends { id: string }> (rows: readonly Row[], limit: number): Page<Row> {
  return rows.length > limit ? { rows: rows.slice(0, limit), next: rows[limit - 1]!.id } : { rows, next: null }
}

/** A page of a keyset list. Do not modify it, because several requests may share it. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  /** The id of the last row if another page follows, otherwise null. */
  readonly next: string | null
}

/** Creates a page of at most `limit` rows. Query `limit + 1` rows, so that it can tell whether another page follows. */
export function toPage<Row extends { id: string }> (rows: readonly Row[], limit: number): Page<Row> {
  return rows.length > limit ? { rows: rows.slice(0, limit), next: rows[limit - 1]!.id } : { rows, next: null }
}

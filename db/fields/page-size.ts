import { sql, type RawBuilder } from 'kysely'
import { bytesOf, type Fields } from '../../schema/fields/fields.ts'
import type { FieldTable } from './field-columns.ts'

// The size of a page, in bytes of fields of the host. A page with larger ones has fewer rows.
const PAGE_BYTES = 4 * 1024 * 1024

/** Returns whether so many rows may be more than a page has. Then their sizes are read first. */
export const mayBeLarge = (fields: Fields, rows: number): boolean => bytesOf(fields) * rows > PAGE_BYTES

/** Returns the size of the fields of a row, in bytes, if there are any. */
export function sizeOfFields (table: FieldTable, fields: Fields): RawBuilder<number> {
  const sizes = fields.map(({ name }) => sql`coalesce(octet_length(${sql.ref(`${table}.${name}`)}::text), 0)`)
  return sql<number>`${sql.join(sizes, sql` + `)}`
}

/** Returns the rows that a page has, of those that were found: at least one. */
export function takeFitting<Row extends { bytes: number }> (found: readonly Row[], limit: number): Row[] {
  let bytes = 0
  return found.slice(0, limit).filter(({ bytes: more }, index) => (bytes += more) <= PAGE_BYTES || index === 0)
}

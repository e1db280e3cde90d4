import { sql, type Expression, type RawBuilder } from 'kysely'

/**
 * Returns the right side of `column = …` for rows whose column is among the values that a query selects. PostgreSQL
 * executes the query once and looks up its values in the index of the column. With `in` or a join it compares each row
 * with each value if it takes the table for empty. It does so for up to a minute if all rows were deleted when it
 * analyzed the table, whatever was added since.
 */
export const anyOf = <Value>(query: Expression<Record<string, Value>>): RawBuilder<Value> =>
  sql<Value>`any(array(${query}))`

/** The place of a row in its table, for tables whose key has several columns. It changes if the row does. */
export const ctid = sql<string>`ctid`

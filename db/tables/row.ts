import type { Selectable } from 'kysely'

/** A row with the given columns, with their names in camel case, as the layers above see it. */
export type Row<Table, Columns extends keyof Selectable<Table>> = {
  [Column in Columns as Camel<Column & string>]: Selectable<Table>[Column]
}

type Camel<Name extends string> =
  Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name

/** Returns a copy for the host, without the row's version. Rows may be shared with concurrent requests. */
export function copyRow<Value extends object> (value: Value): Omit<Value, 'rowVersion'> {
  const { rowVersion, ...others } = structuredClone(value) as Value & { rowVersion?: string }
  return others
}

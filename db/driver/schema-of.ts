import { keyOf } from './database-key.ts'
import type { Database } from '../tables/index.ts'

const schemas = new WeakMap<object, string>()

/** Sets the schema of a database, which Kysely adds to the names of tables, but not to those of functions. */
export function setSchema (db: Database, schema: string): void {
  schemas.set(keyOf(db), schema)
}

/** Returns the schema of a database or a transaction. */
export function schemaOf (db: Database): string {
  return schemas.get(keyOf(db))!
}

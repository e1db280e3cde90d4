import { sql, type Compilable, type CompiledQuery, type Expression, type RawBuilder } from 'kysely'
import postgres from 'postgres'
import type { Database, Tables } from '../tables/index.ts'

/**
 * Returns whether an error means that a row violates a constraint or unique index of one of Usher's tables. A table of
 * the host, which a trigger or a hook writes to, may have one of the same name. Usher's triggers report a constraint
 * without its table.
 */
export function violates (db: Database, error: unknown, table: keyof Tables, constraint: string): boolean {
  if (!(error instanceof postgres.PostgresError) || error.constraint_name !== constraint) return false
  const { schema_name: schema, table_name: name } = error
  return name === undefined || (name === table && schema === schemaOf(db))
}

/** Returns whether an error means that another user has an address. */
export function isEmailTaken (db: Database, error: unknown): boolean {
  return violates(db, error, 'users', 'users_email')
}

/**
 * Returns whether an error means that a foreign key forbids a deletion: `on delete restrict` (23001) or `no action`
 * (23503).
 */
export function violatesForeignKey (error: unknown): boolean {
  return error instanceof postgres.PostgresError && (error.code === '23503' || error.code === '23001')
}

/**
 * Returns whether a text is a UUID that PostgreSQL accepts. Any other text is treated as an unknown id, not as an
 * error.
 */
export function isUuid (text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}

/**
 * Returns values that need no quotes, such as UUIDs and numbers, as the text of an array. The driver would quote each
 * of them.
 */
export const arrayOf = (values: readonly (string | number)[]): string => `{${values.join()}}`

/**
 * Returns the row for each id, in the order of `ids`, or `undefined` for an id without a row. Ids may be in upper case.
 */
export function inOrder<Found extends { id: string }> (ids: readonly string[], rows: readonly Found[]): (Found |
  undefined)[] {
  const byId = new Map<string, Found>()
  for (const row of rows) byId.set(row.id, row)
  return ids.map((id) => byId.get(id.toLowerCase()))
}

/**
 * Returns a function that runs a query and resolves with its rows. The query is built only once for each database,
 * because building it costs more than sending it.
 * @param build gets a stand-in for each parameter by its name, which may be used anywhere as a value, but not looked at
 */
export function prepare<Parameters extends object, Row> (build: (db: Database, given: Parameters) => Compilable<Row>) {
  const built = new WeakMap<Database, CompiledQuery<Row>>()
  return async (db: Database, given: Parameters): Promise<Row[]> => {
    const query = built.get(db) ?? build(db, standIns as Parameters).compile()
    built.set(db, query)
    const parameters = query.parameters.map((value) =>
      value instanceof StandIn ? given[value.name as keyof Parameters] : value)
    return (await db.executeQuery<Row>({ ...query, parameters })).rows
  }
}

// Stands for the parameter of a prepared query while the query is built.
class StandIn {
  readonly name: string

  constructor (name: string) {
    this.name = name
  }
}
const standIns: object = new Proxy({}, { get: (_, name) => new StandIn(String(name)) })

/**
 * Allows a transaction to pause for ten seconds between statements instead of three (`db/driver/client-options.ts`),
 * for example to remove files. Use it only if the locks of the transaction delay no request.
 */
export async function allowPauses (trx: Database): Promise<void> {
  await sql`set local idle_in_transaction_session_timeout = '10s'`.execute(trx)
}

/**
 * Takes the advisory lock `name` until the transaction ends. Only one transaction of all nodes can have it at a time.
 */
export async function lock (trx: Database, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`usher ${name}`}, 0))`.execute(trx)
}

/** Returns whether PostgreSQL has reported an error with this SQLSTATE. */
export const hasSqlState = (error: unknown, code: string): boolean =>
  error instanceof postgres.PostgresError && error.code === code

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

/** Returns an object that an open database shares with its transactions, as the key for what is known of it. */
export const keyOf = (db: Database): object => db.getExecutor().adapter

const schemas = new WeakMap<object, string>()

/** Sets the schema of a database, which Kysely adds to the names of tables, but not to those of functions. */
export function setSchema (db: Database, schema: string): void {
  schemas.set(keyOf(db), schema)
}

/** Returns the schema of a database or a transaction. */
export function schemaOf (db: Database): string {
  return schemas.get(keyOf(db))!
}

/**
 * Returns why PostgreSQL has refused values: a type or a constraint does not allow them, or a trigger has raised an
 * exception. Returns undefined for other errors.
 */
export function refusalOf (error: unknown): string | undefined {
  return error instanceof postgres.PostgresError && /^(22|23|P0001)/.test(error.code) ? error.message : undefined
}

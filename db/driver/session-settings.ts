import { StartError } from './start-errors.ts'

type Values = Readonly<Record<string, string>>

/**
 * The settings of a database session on which the results of statements depend, and which a role, a database or a
 * server may set differently. A pooler keeps account of these when they are startup parameters, which take precedence.
 */
export const TRACKED: Values = {
  client_encoding: 'UTF8',
  DateStyle: 'ISO, MDY',
  // A day of an interval is not always 24 hours elsewhere.
  TimeZone: 'UTC',
  standard_conforming_strings: 'on',
}

/**
 * Further ones. Poolers refuse these startup parameters, or ignore them. `default_transaction_read_only` is not among
 * them, because servers use it to refuse writes on purpose, for example while a disk is full.
 */
export const UNTRACKED: Values = {
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  array_nulls: 'on',
  extra_float_digits: '1',
  transform_null_equals: 'off',
  quote_all_identifiers: 'off',
  gin_fuzzy_search_limit: '0',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
}

/** Limits that poolers refuse as well. They are defaults: those of the database's URL take precedence. */
export const LIMITS: Values = {
  lock_timeout: '0',
  // The pools keep connections that are idle.
  idle_session_timeout: '0',
}

// The settings whose values are verified, also where they cannot be startup parameters. Triggers are part of Usher.
const VERIFIED: Values = { ...TRACKED, ...UNTRACKED, session_replication_role: 'origin' }
const HARMLESS: Readonly<Record<string, RegExp>> = {
  IntervalStyle: /./,
  default_transaction_deferrable: /./,
  DateStyle: /^ISO, /,
  extra_float_digits: /^[123]$/,
  session_replication_role: /^(origin|local)$/,
}

const namesOf = [...Object.keys(VERIFIED), 'transaction_timeout', 'server_encoding']

/** An expression of SQL whose value `requireSettings` takes: the settings of the session, as JSON. */
export const SESSION_SETTINGS = `jsonb_build_object('user', session_user, 'database', current_database(),
  ${namesOf.map((name) => `'${name}', current_setting('${name}', true)`).join(', ')})`

/** Returns startup parameters with others in place of those of the same name, which is case-insensitive. */
export function withParameters<Value> (
  given: Readonly<Record<string, Value>>, forced: Values
): Record<string, Value | string> {
  const names = new Set(Object.keys(forced).map((name) => name.toLowerCase()))
  return { ...Object.fromEntries(Object.entries(given).filter(([name]) => !names.has(name.toLowerCase()))), ...forced }
}

/**
 * Throws a `StartError` with a sentence if a session has settings that Usher cannot work with.
 * @param values the value of `SESSION_SETTINGS`
 */
export function requireSettings (values: Values): void {
  const { user, database, server_encoding: encoding } = values
  if (encoding !== 'UTF8') {
    throw new StartError(`the database "${database}" has the encoding ${encoding}, which cannot store every text: ` +
      'create one with the encoding UTF8 (create database <name> encoding \'UTF8\' template template0)')
  }
  const isWrong = ([name, value]: [string, string]) => !(HARMLESS[name]?.test(values[name]!) ?? values[name] === value)
  const wrong = Object.entries(VERIFIED).filter(isWrong)
  if (wrong.length === 0) return
  const found = wrong.map(([name]) => `${name} = '${values[name]}'`).join(', ')
  const remedy = wrong.map(([name, value]) => `alter role "${user}" in database "${database}" set ${name} = '${value}'`)
  throw new StartError(
    `the sessions of the database have ${found}, with which Usher does not work, and its own settings ` +
      `have no effect there, for example because of a pooler. Run ${remedy.join('; ')}, and reconnect the pooler`
  )
}

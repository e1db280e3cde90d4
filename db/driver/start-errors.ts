import postgres from 'postgres'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import { PROGRAM } from '../../schema/runtime/program.ts'
import { isOutage } from './circuit-breaker.ts'
import type { Failure } from './sockets.ts'

/**
 * The oldest version of PostgreSQL that Usher is tested with. The PostgreSQL project does not support an older one
 * either.
 */
export const OLDEST_POSTGRESQL = 15

/**
 * An error that stops the start. Its message names Usher, the PostgreSQL schema and the remedy. It never contains a
 * password.
 */
export class StartError extends Error {
  /** The SQLSTATE of PostgreSQL's error, if there is one. */
  readonly code: string | undefined

  constructor (message: string, cause?: Failure) {
    super(`usher: ${message}`, { cause })
    this.code = cause?.code
  }
}

/**
 * Returns the error that explains why the start has failed, if the database is at fault. Other errors are returned as
 * they are.
 */
export function explainStart (error: Error, schema: string): Error {
  if (error.message.startsWith('usher: ')) return error
  const cause = (error.cause ?? error) as Failure
  if (isReadOnly(cause)) {
    const message = 'usher: the database accepts no writes: it is a standby, or set to read only. ' +
      'Promote it, or correct the database URL'
    return Object.assign(new DatabaseUnavailable({ cause }), { message })
  }
  if (isOutage(cause)) {
    return Object.assign(
      new DatabaseUnavailable({ cause }), { message: `usher: the database cannot be reached (${cause.code})` }
    )
  }
  if (CERTIFICATE.test(cause.code ?? '')) {
    return new StartError(`the certificate of the database cannot be verified (${cause.code}: ${cause.message}). ` +
      'Name the certificate of its authority with sslrootcert in the URL of the database', cause)
  }
  if (cause.code === UNDEFINED && cause.severity === 'FATAL') {
    const message = `PostgreSQL rejects a parameter of the database URL (${cause.message}): correct or remove it`
    return new StartError(message, cause)
  }
  if (!(cause instanceof postgres.PostgresError)) {
    return cause === error.cause && error instanceof DatabaseUnavailable ? cause : error
  }
  const { explain } = remedies.find(({ codes }) => codes.test(cause.code))!
  return new StartError(explain(cause, schema), cause)
}

/**
 * Returns whether an error means that a server accepts no writes: it refuses one (25006), or Usher has found that it
 * is a standby.
 */
export const isReadOnly = ({ code }: { code?: string | undefined }): boolean => code === '25006' || code === 'READ_ONLY'

const UNDEFINED = '42704'
// The codes of OpenSSL and Node.js for certificates.
const CERTIFICATE = /CERT|ERR_TLS|UNABLE_TO_(GET|VERIFY)/

const remedies: { codes: RegExp, explain: (error: postgres.PostgresError, schema: string) => string }[] = [
  {
    // A table, an object, a schema, a column or a function that exists already.
    codes: /^42(P07|710|P06|701|723)$/,
    explain: ({ message }, schema) => conflict(schema, message),
  },
  {
    codes: /^42501$/,
    explain: (
      { message }, schema
    ) => `the database user lacks a privilege for the schema "${schema}" (${message}). Grant it, for example with ` +
      `create schema "${schema}" authorization <user>. To create and change the tables as another user, run migrate() or "${PROGRAM} migrate" as that ` +
      'user, and grant usage on the schema and all privileges on its tables and sequences to this one',
  },
  {
    // The statement or the lock has waited until its limit.
    codes: /^(57014|55P03)$/,
    explain: (_, schema) =>
      `another program has locked tables of the schema "${schema}", for example a restore or a migration. Start again when it has ended`,
  },
  {
    codes: /^28...$/,
    explain: ({ message, code }) =>
      `PostgreSQL rejects the login (${code}: ${message}). Check the user and the password of the database URL`,
  },
  {
    codes: /^3D000$/,
    explain: ({ message }) =>
      `the database cannot be used (${message}). Create it, or correct the name in the database URL`,
  },
  {
    codes: /^08P01$/,
    explain: ({ message }) => `the pooler of the database rejects a parameter of its URL (${message}). ` +
      'Remove it, or add it to ignore_startup_parameters of PgBouncer',
  },
  {
    codes: /./,
    explain: ({ message, code }, schema) =>
      `PostgreSQL reports an error for the schema "${schema}" (${code}: ${message})`,
  },
]

/** Returns the message for a schema that contains something of another program. */
export const conflict = (schema: string, detail: string): string =>
  `the PostgreSQL schema "${schema}" contains something that is not Usher's (${detail}). Choose another schema with the option schema, or remove it`

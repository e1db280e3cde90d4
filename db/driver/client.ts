import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { ConnectionOptions, SecureVersion } from 'node:tls'
import postgres, { type Options, type PostgresType, type Sql } from 'postgres'
import { parseDatabaseUrl, type DatabaseAddress, type Tls } from '../../schema/options/database-url.ts'
import { requireScram } from './require-scram.ts'

// The limit of macOS. That of Linux is 107 bytes. Node.js does not open a longer path.
const MAX_PATH_BYTES = 103

// What postgres.js describes otherwise than it is.
type OwnDescribed = 'path' | 'socket' | 'ssl' | 'connect_timeout' | 'target_session_attrs'

/** The parsed options of a postgres.js client, which `postgres()` accepts back. */
export interface ClientOptions extends Omit<Sql['options'], OwnDescribed> {
  path?: string | false
  socket?: (options: unknown) => Socket | Promise<Socket>
  ssl?: unknown
  target_session_attrs?: string | null
  sslnegotiation?: string | null
  /** In seconds. */
  connect_timeout: number
  /** How long each of several hosts may take to say whether it accepts writes. postgres.js ignores it. */
  primaryMs: number
}

/**
 * Creates a postgres.js client for the URL of a database, which connects with its first statement. All connections to a
 * database that is given by a URL come from here, because postgres.js knows few of the parameters that URLs for libpq
 * have. Throws a `TypeError` for an invalid URL and an `Error` for a file that cannot be read.
 */
export function createClient (databaseUrl: string, given: Options<Record<string, PostgresType>> = {}): Sql {
  const address = parseDatabaseUrl(databaseUrl)
  const { user, password, socket, requiresScram, tls, options, settings } = address
  const path = socket && join(socket.folder, `.s.PGSQL.${socket.port}`)
  const dial = (address: { host: string[], port: number[] }): Socket => {
    const opened = path === undefined ? connect(address.port[0]!, address.host[0]) : connectToPath(path)
    return requiresScram ? requireScram(opened) : opened
  }
  return postgres({
    ...options,
    ...placeIn(address),
    ...user !== undefined && { user },
    ...password !== undefined && { password },
    ...tls && { ssl: readTls(tls) },
    ...(socket || requiresScram) && { ssl: false, socket: dial },
    ...path !== undefined && { path },
    ...given,
    connection: { ...given.connection, ...settings },
  } as never) as unknown as Sql
}

/** Returns the name of the database of a URL, and its hosts and their ports, or the folder of a Unix socket. */
export function readPlace (databaseUrl: string): Pick<Sql['options'], 'database' | 'host' | 'port'> {
  const { database, host, port } = postgres(placeIn(parseDatabaseUrl(databaseUrl)) as never).options
  return { database, host, port }
}

// What is absent is left to postgres.js, which has defaults and reads variables such as PGHOST.
const placeIn = ({ hosts, ports, database, socket }: DatabaseAddress) => ({
  ...database !== undefined && { database },
  ...hosts.length > 0 && { host: hosts },
  ...ports.length > 0 && { port: hosts.length > 0 ? ports : ports[0] },
  // The host is what messages show.
  ...socket && { host: [socket.folder], port: [socket.port] },
})

// The option `ssl` of postgres.js.
function readTls (tls: Tls): unknown {
  const { mode, rootCertificate, certificate, key, revocations, passphrase, minVersion, maxVersion } = tls
  const files = [rootCertificate, certificate, key, revocations]
  // postgres.js connects without encryption only for this word.
  if (mode === 'prefer' && files.every((file) => file === undefined)) return mode
  const options: ConnectionOptions = { rejectUnauthorized: mode.startsWith('verify') }
  if (rootCertificate !== undefined) options.ca = readPem('sslrootcert', rootCertificate)
  if (certificate !== undefined) options.cert = readPem('sslcert', certificate)
  if (key !== undefined) options.key = readPem('sslkey', key)
  if (revocations !== undefined) options.crl = readPem('sslcrl', revocations)
  if (passphrase !== undefined) options.passphrase = passphrase
  if (minVersion !== undefined) options.minVersion = minVersion as SecureVersion
  if (maxVersion !== undefined) options.maxVersion = maxVersion as SecureVersion
  if (mode === 'verify-ca') options.checkServerIdentity = () => undefined
  return options
}

function readPem (name: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Error(`usher: the file ${path} of ${name} in the URL of the database cannot be read (${code})`)
  }
}

/**
 * Connects to a Unix socket. If its path is too long for the system, a symbolic link shortens it, in a folder that only
 * this process can write and that is removed at once. It has no fixed place, which another user of the machine could
 * take, or a program that cleans up.
 */
export function connectToPath (path: string): Socket {
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return connect(path)
  const folder = mkdtempSync(join(tmpdir(), `usher-link-${process.pid}-`))
  try {
    const link = join(folder, 'to')
    symlinkSync(dirname(path), link)
    // The path is used before this returns: only the answer is awaited.
    return connect(join(link, basename(path)))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

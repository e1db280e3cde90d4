import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import postgres, { type Options, type PostgresType, type Sql } from 'postgres'
import { parseDatabaseUrl } from '../../schema/database-url.ts'
import { requireScram } from './require-scram.ts'

// The limit of macOS. That of Linux is 107 bytes. Node.js does not open a longer path.
const MAX_PATH_BYTES = 103

/**
 * Creates a postgres.js client for the URL of a database, which connects with its first statement. All connections to a
 * database that is given by a URL come from here, because postgres.js knows neither Unix sockets in URLs nor
 * `require_auth`. Throws a `TypeError` for an invalid URL.
 */
export function createClient (databaseUrl: string, options: Options<Record<string, PostgresType>> = {}): Sql {
  const { url, socket, requiresScram } = parseDatabaseUrl(databaseUrl)
  if (!socket && !requiresScram) return postgres(url, options) as Sql
  const path = socket && join(socket.folder, `.s.PGSQL.${socket.port}`)
  const dial = (address: { host: string[], port: number[] }): Socket => {
    const opened = path === undefined ? connect(address.port[0]!, address.host[0]) : connectToPath(path)
    return requiresScram ? requireScram(opened) : opened
  }
  // The host is what messages show.
  const place = socket && { host: [socket.folder], port: [socket.port], path }
  return postgres(url, { ...place, ssl: false, socket: dial, ...options } as never) as unknown as Sql
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

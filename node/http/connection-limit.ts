import { isOutage } from '../../db/driver/circuit-breaker.ts'
import { readClientOptions } from '../../db/driver/client-options.ts'
import { openClient, type Failure } from '../../db/driver/sockets.ts'
import { multiplyDeadlines, type Deadlines } from '../../schema/options/deadlines.ts'
import type { Settings } from '../settings/settings.ts'
import { connectionsOfNode, workersOf } from '../workers/count.ts'

// The database has no connection left at the moment, or starts.
const TEMPORARY = /^(57P03|53300)$/

/**
 * Returns a sentence if the node may open more connections than the database accepts from it, or undefined. A pooler
 * has limits of its own, and a start reports by itself that a database cannot be reached.
 */
export async function explainConnectionLimit (settings: Settings, url: string): Promise<string | undefined> {
  const { POOL_SIZE } = settings
  // A single process with the default opens fewer connections than any server is set up for.
  if (POOL_SIZE === undefined && workersOf(settings) === 1) return undefined
  const limit = await readLimit(url, multiplyDeadlines(settings.DEADLINE_FACTOR))
  const connections = connectionsOfNode(settings, POOL_SIZE)
  if (limit === undefined || connections <= limit) return undefined
  const cause = POOL_SIZE === undefined ? `WORKERS ${workersOf(settings)}` : `POOL_SIZE ${POOL_SIZE}`
  return `${cause} takes up to ${connections} connections, and the database accepts ${limit} ` +
    '(max_connections without those that it reserves, or a limit of the role or the database): ' +
    'set a smaller POOL_SIZE or fewer WORKERS, or raise the limit of the database.'
}

async function readLimit (url: string, deadlines: Deadlines): Promise<number | undefined> {
  const { databaseStart: timeoutMs } = deadlines
  const options = readClientOptions(url, timeoutMs, deadlines)
  const connection = { ...options.connection, application_name: 'usher-probe' }
  const { sql, end } = openClient(options, { max: 1, connect_timeout: timeoutMs / 1000, connection }, 1)
  // What accepts a connection and does not answer is left to the start.
  const timer = setTimeout(() => { end().catch(() => {}) }, timeoutMs)
  try {
    const rows = await sql<[{ pid: number, limit: number }]>`
      select pg_backend_pid() as pid, least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int -
          coalesce(current_setting('reserved_connections', true)::int, 0),
        (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
        (select nullif(datconnlimit, -1) from pg_database where datname = current_database())
      ) as limit`
    const [{ pid, limit }] = rows
    // A pooler reports other process numbers than PostgreSQL does.
    return rows.state.pid === pid ? limit : undefined
  } catch (error) {
    const { code = '' } = error as Failure
    if (isOutage(error as Failure) || TEMPORARY.test(code)) return undefined
    throw error
  } finally {
    clearTimeout(timer)
    await end()
  }
}

import { sql } from 'kysely'
import type { Test } from 'tap'
import { openDatabase, type Connection, type ConnectionOptions } from '../../db/driver/connection.ts'
import { createProxy, type Proxy } from './proxy.ts'
import { testDatabaseUrl } from './database.ts'

export interface TestConnection extends Connection {
  proxy: Proxy
  /** The messages that were logged. */
  logged: string[]
  /** Runs a statement on the pool and returns its rows. */
  query: <Row>(text: string) => Promise<Row[]>
}

/**
 * Opens a connection to the test database through a proxy, which serves requests at once. It is closed when the test
 * ends.
 */
export async function openConnection (
  t: Test, { isServing = true, ...options }: Partial<ConnectionOptions> & { isServing?: boolean } = {}
): Promise<TestConnection> {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const logged: string[] = []
  const note = (_: object, message: string) => { logged.push(message) }
  const log = { warn: note, info: (message: string) => { logged.push(message) }, error: note }
  const connection = openDatabase({ database: proxy.url, schema: 'public', poolSize: 4, log, ...options })
  connection.setServing(isServing)
  t.teardown(connection.close)
  const query = async <Row>(text: string) => [...(await sql.raw<Row>(text).execute(connection.db)).rows]
  return { ...connection, proxy, logged, query }
}

import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { query } from './embedded.ts'
import { findPort } from './port.ts'
import { createProxy, type Proxy } from './proxy.ts'
import { prepareReplication } from './replication.ts'
import { until } from './until.ts'

/** A server of a group of servers that replicate. */
export interface Server {
  /** Its URL for Usher, whose role is no superuser. */
  readonly url: string
  /** Runs a statement as a superuser. */
  query (text: string): Promise<Record<string, unknown>[]>
}

export interface StandbyServer extends Server {
  /** The network between it and the server that it follows. */
  readonly link: Proxy
  /** Lets it follow another server. */
  follow (server: { readonly port: number }): Promise<void>
  readonly port: number
  /** Resolves when it has everything that the primary has flushed. */
  catchUp (): Promise<void>
}

export interface StandbyGroup {
  readonly primary: Server & { readonly port: number }
  readonly standbys: readonly StandbyServer[]
}

const SETTINGS = [
  // A standby that was away for a while continues.
  'wal_keep_size=1GB', 'max_wal_senders=10', 'wal_receiver_status_interval=1', 'wal_retrieve_retry_interval=50',
]

/**
 * Starts a primary and standbys until the test ends.
 * @param options.settings those of the primary in addition
 */
export async function startStandbys (
  t: Test, folder: string, { count = 2, settings = [] }: { count?: number, settings?: string[] } = {}
): Promise<StandbyGroup> {
  const { password, data, standbys: copies, start } = await prepareReplication(t, folder, {
    count,
    prepare: (password) => `create role boss superuser replication login password '${password}'
grant pg_read_all_stats to usher
`,
    hba: 'host all boss 127.0.0.1/32 trust\nhost replication boss 127.0.0.1/32 trust\n',
    settings: SETTINGS,
  })
  const startServer = async (data: string, more: readonly string[] = []) => {
    const port = await findPort()
    await start(data, port, more)
    const urlOf = (user: string) => `postgres://${user}:${password}@127.0.0.1:${port}/usher`
    return { port, url: urlOf('usher'), query: (text: string) => query(urlOf('boss'), text) }
  }
  const primary = await startServer(data, settings)

  async function startStandby (copy: string, name: string): Promise<StandbyServer> {
    const link = await createProxy(t, `tcp://127.0.0.1:${primary.port}`)
    // In a file, so that it can be changed.
    const conninfo = (port: number | string) => `host=127.0.0.1 port=${port} user=boss application_name=${name}`
    await appendFile(
      join(copy, 'postgresql.conf'), `\nprimary_conninfo = '${conninfo(new URL(link.url).port)}'\n`
    )
    const server = await startServer(copy)
    return {
      ...server,
      link,
      async follow ({ port }) {
        await server.query(`alter system set primary_conninfo = '${conninfo(port)}'`)
        await server.query('select pg_reload_conf()')
      },
      async catchUp () {
        const [row] = await primary.query('select pg_current_wal_flush_lsn()::text as lsn')
        await until('the standby has caught up', async () =>
          (await server.query(`select from pg_stat_wal_receiver where pg_last_wal_replay_lsn() >= '${row!.lsn}'`)).length)
      },
    }
  }

  const standbys = await Promise.all(copies.map((copy, index) => startStandby(copy, `standby_${index}`)))
  await until('the standbys follow', async () =>
    (await primary.query("select from pg_stat_replication where state = 'streaming'")).length === count)
  return { primary, standbys }
}

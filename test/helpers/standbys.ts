import { once } from 'node:events'
import { appendFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { run } from '../../node/embedded/binaries.ts'
import { query } from './embedded.ts'
import { findPort } from './port.ts'
import { createProxy, type Proxy } from './proxy.ts'
import { prepareReplication, type ReplicationOptions } from './replication.ts'
import { until } from './until.ts'

/** A server of a group of servers that replicate. */
export interface Server {
  /** Its URL for Usher, whose role is no superuser. */
  readonly url: string
  readonly port: number
  /** Runs a statement as a superuser. */
  query (text: string): Promise<Record<string, unknown>[]>
  /** Ends it as a crash does: at once, with a recovery at the next start. */
  crash (): Promise<void>
  /**
   * Starts it again after a crash as a standby of another server, which was promoted meanwhile. What it has and that
   * server lacks is removed by pg_rewind, which Debian's PostgreSQL has and the embedded one has not.
   */
  rejoin (server: Server): Promise<void>
}

export interface StandbyServer extends Server {
  /** The network between it and the server that it follows. */
  readonly link: Proxy
  /** Lets it follow another server. */
  follow (server: { readonly port: number }): Promise<void>
  /** Resolves when it has everything that the primary has flushed. */
  catchUp (): Promise<void>
}

export interface StandbyGroup {
  readonly primary: Server
  readonly standbys: readonly StandbyServer[]
}

const SETTINGS = [
  // A standby that was away for a while continues.
  'wal_keep_size=1GB', 'max_wal_senders=10', 'wal_receiver_status_interval=1', 'wal_retrieve_retry_interval=50',
]

// A server listens before it accepts statements (cannot_connect_now).
function isStarting (error: { code?: string }): false {
  if (error.code !== '57P03') throw error
  return false
}

/**
 * Starts a primary and standbys until the test ends.
 * @param options.settings those of the primary in addition
 * @param options.cluster that of the primary, if it is not one of the embedded PostgreSQL
 */
export async function startStandbys (
  t: Test, folder: string, { count = 2, settings = [], cluster }: { count?: number, settings?: string[] } &
    Pick<ReplicationOptions, 'cluster'> = {}
): Promise<StandbyGroup> {
  const { programs, runAs, password, data, standbys: copies, start } = await prepareReplication(t, folder, {
    count,
    cluster,
    hba: 'host all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n',
    settings: SETTINGS,
  })
  // In a file, so that it can be changed.
  const conninfo = (port: number | string, name: string) =>
    `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres application_name=${name}'`
  const startServer = async (data: string, more: readonly string[] = []): Promise<Server> => {
    const port = await findPort()
    let child = await start(data, port, more)
    const urlOf = (user: string) => `postgres://${user}:${password}@127.0.0.1:${port}/usher`
    return {
      port,
      url: urlOf('usher'),
      query: (text: string) => query(urlOf('postgres'), text),
      async crash () {
        const ended = once(child, 'close')
        child.kill('SIGQUIT')
        await ended
      },
      async rejoin (server) {
        // pg_rewind recognises the timeline by the last checkpoint.
        await server.query('checkpoint')
        const source = `host=127.0.0.1 port=${server.port} user=postgres dbname=usher`
        const rewind = [join(dirname(programs.postgres), 'pg_rewind'), '-D', data, '--source-server', source]
        await run([...runAs.before, ...rewind], runAs)
        await appendFile(join(data, 'postgresql.auto.conf'), `${conninfo(server.port, 'rejoined')}\n`)
        await writeFile(join(data, 'standby.signal'), '')
        child = await start(data, port, more)
      },
    }
  }
  const primary = await startServer(data, settings)
  await until('the primary accepts statements', () => primary.query('select').then(() => true, isStarting))
  // Reads need it. In single-user mode before the start, it would cost another process. There is no standby yet that
  // could confirm the commit.
  await primary.query('set synchronous_commit = local; grant pg_read_all_stats to usher')

  async function startStandby (copy: string, name: string): Promise<StandbyServer> {
    const link = await createProxy(t, `tcp://127.0.0.1:${primary.port}`)
    await appendFile(join(copy, 'postgresql.conf'), `\n${conninfo(new URL(link.url).port, name)}\n`)
    const server = await startServer(copy)
    return {
      ...server,
      link,
      async follow ({ port }) {
        await server.query(`alter system set ${conninfo(port, name)}`)
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

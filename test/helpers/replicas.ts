import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { run } from '../../node/embedded/binaries.ts'
import { findPort } from './port.ts'
import { createProxy } from './proxy.ts'
import { prepareReplication } from './replication.ts'
import { openSql } from './sql.ts'
import { until } from './until.ts'

export interface Replicas {
  /** The URL with both servers, the primary first. */
  readonly url: string
  /** The URL with both servers, the standby first. */
  readonly reversed: string
  /** The URL of the standby alone. */
  readonly standbyUrl: string
  /**
   * Waits until the standby has everything, and then disconnects it from the primary. Only for an asynchronous standby.
   */
  disconnectStandby (): Promise<void>
  /** Kills the primary, which simulates a crash of its machine. */
  killPrimary (): void
  /** Promotes the standby to primary. */
  promote (): Promise<void>
}

/** Starts a primary and a standby until the test ends. With `synchronous`, the standby confirms each commit. */
export async function startReplicas (t: Test, folder: string, { synchronous = true } = {}): Promise<Replicas> {
  const { programs, runAs, password, data, standbys: [standby = ''], start } = await prepareReplication(t, folder, {
    count: 1,
    prepare: 'alter role usher replication\ngrant pg_monitor to usher\n',
    hba: 'host replication usher 127.0.0.1/32 scram-sha-256\n',
    settings: ['superuser_reserved_connections=0'],
  })
  const [primaryPort, standbyPort] = [await findPort(), await findPort()]
  const primary = await start(data, primaryPort, synchronous ? ['synchronous_standby_names=*'] : [])
  const proxy = await createProxy(t, `tcp://127.0.0.1:${primaryPort}`)
  await start(
    standby,
    standbyPort,
    [`primary_conninfo=host=127.0.0.1 port=${new URL(proxy.url).port} user=usher password=${password}`]
  )
  const urlOf = (...ports: number[]) =>
    `postgres://usher:${password}@${ports.map((port) => `127.0.0.1:${port}`).join()}/usher`
  const sql = openSql(t, { options: { databaseUrl: urlOf(primaryPort), schema: 'public' } })
  await until('the standby follows', async () =>
    (await sql`select from pg_stat_replication where state = 'streaming'`.catch(() => [])).length > 0)
  await sql.end()

  return {
    url: urlOf(primaryPort, standbyPort),
    reversed: urlOf(standbyPort, primaryPort),
    standbyUrl: urlOf(standbyPort),

    async disconnectStandby () {
      const sql = openSql(t, { options: { databaseUrl: urlOf(primaryPort), schema: 'public' } })
      await until('the standby has all of it', async () =>
        (await sql`select from pg_stat_replication where replay_lsn >= pg_current_wal_lsn()`).length > 0)
      await sql.end()
      proxy.refuse()
    },

    killPrimary () {
      primary.kill('SIGKILL')
    },

    promote: () => run([...runAs.before, join(dirname(programs.postgres), 'pg_ctl'), 'promote', '-D', standby], runAs),
  }
}

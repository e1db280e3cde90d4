import { execFile } from 'node:child_process'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { environment, findPrograms, run } from '../../node/embedded/binaries.ts'
import { openCluster } from '../../node/embedded/cluster.ts'
import { openSql } from './sql.ts'
import { findPort } from './port.ts'
import { runProgram } from './program.ts'
import { createProxy } from './proxy.ts'
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

const SETTINGS = [
  'fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'superuser_reserved_connections=0',
  'log_min_messages=fatal',
]

/** Starts a primary and a standby until the test ends. With `synchronous`, the standby confirms each commit. */
export async function startReplicas (t: Test, folder: string, { synchronous = true } = {}): Promise<Replicas> {
  const programs = await findPrograms()
  const cluster = await openCluster(join(folder, 'primary'), programs, false, () => {})
  const { runAs, password, data } = cluster
  await run(
    [...runAs.before, programs.postgres, '--single', '-D', data, '-c', 'fsync=off', 'postgres'],
    runAs,
    'alter role usher replication\ngrant pg_monitor to usher\n'
  )
  await appendFile(join(data, 'pg_hba.conf'), 'host replication usher 127.0.0.1/32 scram-sha-256\n')
  const copy = join(folder, 'standby')
  await mkdir(copy)
  await promisify(execFile)('cp', ['-a', data, copy])
  const standby = join(copy, 'data')
  await writeFile(join(standby, 'standby.signal'), '')

  const [primaryPort, standbyPort] = [await findPort(), await findPort()]
  const start = (data: string, port: number, settings: string[]) => {
    const words = [
      ...runAs.before, programs.postgres, '-D', data, '-p', String(port),
      ...[...SETTINGS, ...settings].flatMap((setting) => ['-c', setting]),
    ]
    return runProgram(t, port, words, { ...runAs.options, env: environment(), cwd: '/', stop: 'SIGINT' })
  }
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

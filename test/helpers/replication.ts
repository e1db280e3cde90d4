import { execFile } from 'node:child_process'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { environment, findPrograms, run } from '../../node/embedded/binaries.ts'
import { openCluster } from '../../node/embedded/cluster.ts'
import { template } from './database.ts'
import type { NewCluster } from './debian-postgres.ts'
import { runProgram } from './program.ts'

const SETTINGS = [
  'fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'log_min_messages=fatal',
]

export interface ReplicationOptions {
  /** How many standbys there are. */
  count: number
  /** The statements of a superuser that prepare the primary before it starts, one a line. */
  prepare?: string
  /** Further lines of `pg_hba.conf`. */
  hba: string
  /** Settings of all servers in addition, such as `max_wal_senders=10`. */
  settings: readonly string[]
  /** The cluster of the primary, if it is not one of the embedded PostgreSQL. */
  cluster?: NewCluster & { readonly password: string } | undefined
}

async function copyTemplate (folder: string): Promise<NonNullable<ReplicationOptions['cluster']>> {
  const programs = await findPrograms()
  await mkdir(folder)
  await promisify(execFile)('cp', ['-a', `${template}/postgres`, folder])
  return { programs, ...await openCluster(folder, programs, false, () => {}) }
}

/**
 * Creates the clusters of a primary and of its standbys, which do not know yet where it is. None of them runs.
 * `start` runs the server of one of the folders `data` and `standbys` until the test ends.
 */
export async function prepareReplication (
  t: Test, folder: string, { count, prepare, hba, settings, cluster }: ReplicationOptions
) {
  const { programs, runAs, password, data } = cluster ?? await copyTemplate(join(folder, 'primary'))
  const single = [...runAs.before, programs.postgres, '--single', '-D', data, '-c', 'fsync=off', 'postgres']
  if (prepare !== undefined) await run(single, runAs, prepare)
  await appendFile(join(data, 'pg_hba.conf'), hba)
  const standbys = Array.from({ length: count }, (_, index) => join(folder, `standby-${index}`, 'data'))
  for (const standby of standbys) {
    await mkdir(join(standby, '..'))
    await promisify(execFile)('cp', ['-a', data, standby])
    await writeFile(join(standby, 'standby.signal'), '')
  }
  const start = (data: string, port: number, more: readonly string[] = []) => {
    const words = [...SETTINGS, ...settings, ...more].flatMap((setting) => ['-c', setting])
    return runProgram(t, port, [...runAs.before, programs.postgres, '-D', data, '-p', String(port), ...words], {
      ...runAs.options, env: environment(), cwd: '/', stop: 'SIGINT',
    })
  }
  return { programs, runAs, password, data, standbys, start }
}

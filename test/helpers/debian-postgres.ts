import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir } from 'node:fs/promises'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { accountFor, chooseRunAs, environment, run, type Programs, type RunAs } from '../../node/embedded/binaries.ts'
import { findPort } from './port.ts'
import { runProgram } from './program.ts'

/** A database folder that no server runs on yet. */
export interface NewCluster {
  readonly programs: Programs
  readonly runAs: RunAs
  readonly data: string
}

/** Creates a cluster of the PostgreSQL of Debian's packages in this folder. Its superuser needs no password. */
async function createCluster (folder: string, superuser: string): Promise<NewCluster> {
  const [initdb] = globSync('/usr/lib/postgresql/*/bin/initdb').sort()
  if (!initdb) throw new Error('PostgreSQL is not installed: run scripts/install-release.sh')
  const data = join(folder, 'debian')
  await mkdir(data)
  const account = await accountFor(0)
  if (account) {
    await chmod(folder, 0o755)
    await chown(data, account.uid, account.gid)
  }
  const runAs = await chooseRunAs(account, initdb, data)
  await run(
    [...runAs.before, initdb, '-D', data, '-U', superuser, '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync',
      // For pg_rewind.
      '--data-checksums'],
    runAs
  )
  return { programs: { initdb, postgres: initdb.replace(/initdb$/, 'postgres') }, runAs, data }
}

/** Creates a cluster like the embedded one: its role `usher` has a password and owns the database `usher`. */
export async function createDebianCluster (folder: string): Promise<NewCluster & { readonly password: string }> {
  const cluster = await createCluster(folder, 'postgres')
  const { programs, runAs, data } = cluster
  const password = randomBytes(24).toString('base64url')
  await run(
    [...runAs.before, programs.postgres, '--single', '-D', data, '-c', 'fsync=off', 'postgres'], runAs,
    `create role usher login password '${password}'\ncreate database usher owner usher\n`
  )
  return { ...cluster, password }
}

/**
 * Starts the PostgreSQL of Debian's packages, in a new cluster in this folder, until the test ends. Returns its URL.
 */
export async function startDebianPostgres (t: Test, folder: string): Promise<string> {
  const { programs, runAs, data } = await createCluster(folder, 'usher')
  const port = await findPort()
  const settings = ['fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_wal_size=4GB']
    .flatMap((setting) => ['-c', setting])
  await runProgram(t, port, [...runAs.before, programs.postgres, '-D', data, '-p', String(port), ...settings], {
    ...runAs.options, env: environment(), cwd: '/', stop: 'SIGINT',
  })
  return `postgres://usher@127.0.0.1:${port}/postgres`
}

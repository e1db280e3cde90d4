import { chmod, chown, mkdir } from 'node:fs/promises'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { accountFor, chooseRunAs, environment, run } from '../../node/embedded/binaries.ts'
import { findPort } from './port.ts'
import { runProgram } from './program.ts'

/**
 * Starts the PostgreSQL of Debian's packages, in a new cluster in this folder, until the test ends. Returns its URL.
 */
export async function startDebianPostgres (t: Test, folder: string): Promise<string> {
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
    [...runAs.before, initdb, '-D', data, '-U', 'usher', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
    runAs
  )
  const port = await findPort()
  const settings = ['fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_wal_size=4GB']
    .flatMap((setting) => ['-c', setting])
  await runProgram(t, port, [
    ...runAs.before, initdb.replace(/initdb$/, 'postgres'), '-D', data, '-p', String(port), ...settings,
  ], {
    ...runAs.options, env: environment(), cwd: '/', stop: 'SIGINT',
  })
  return `postgres://usher@127.0.0.1:${port}/postgres`
}

import { chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { accountFor } from '../../node/embedded/binaries.ts'
import { findPort } from './port.ts'
import { runProgram } from './program.ts'

/**
 * Starts PgBouncer with `docs/pgbouncer.ini`, or in another mode, until the test ends. Returns the URL of the database
 * through it. Its log is in the file `log` of the folder.
 */
export async function startPgbouncer (
  t: Test, folder: string, databaseUrl: string, mode: 'transaction' | 'session' = 'transaction'
): Promise<string> {
  const { port: databasePort, username, password } = new URL(databaseUrl)
  const port = await findPort()
  const file = join(folder, 'pgbouncer.ini')
  let settings = await readFile(join(import.meta.dirname, '../../docs/pgbouncer.ini'), 'utf8')
  const set = (what: string, value: string) => {
    if (!settings.includes(what)) throw new Error(`docs/pgbouncer.ini has no ${what}`)
    settings = settings.replace(what, value)
  }
  set('host=127.0.0.1 port=5432', `host=127.0.0.1 port=${databasePort}`)
  set('listen_port = 6432', `listen_port = ${port}\nunix_socket_dir =\nlogfile = ${join(folder, 'log')}`)
  set('/etc/pgbouncer/userlist.txt', join(folder, 'userlist.txt'))
  set('pool_mode = transaction', `pool_mode = ${mode}`)

  await mkdir(folder, { recursive: true })
  await writeFile(file, settings)
  await writeFile(join(folder, 'userlist.txt'), `"${username}" "${password}"\n`)
  // Like PostgreSQL, PgBouncer does not run as root.
  const account = await accountFor(0)
  if (account) await chown(folder, account.uid, account.gid)
  await runProgram(t, port, ['/usr/sbin/pgbouncer', file], account && { uid: account.uid, gid: account.gid })
  return Object.assign(new URL(databaseUrl), { port: String(port) }).href
}

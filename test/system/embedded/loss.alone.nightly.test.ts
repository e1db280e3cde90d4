import { once } from 'node:events'
import { rename, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { prepareFolder } from '../../helpers/database.ts'
import { isDown, postmaster, query, start, until } from '../../helpers/embedded.ts'

t.jobs = 4

t.test('a server that crashes is started again on the same socket, and all its nodes hold leases again', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const lines: string[] = []
  const [one, other] = [await start(t, dataDir, { log: (line) => lines.push(line) }), await start(t, dataDir)]
  await query(one.url, 'create table kept as select 7 as seven')
  process.kill(await postmaster(dataDir), 'SIGKILL')
  await until('both are back', async () =>
    (await query(one.url, "select from pg_stat_activity where application_name = 'usher-lease'")).length === 2)
  t.match(await query(one.url, 'select * from kept'), [{ seven: 7 }])
  // A lease is visible in the database before its node has logged it.
  await until('it is logged', async () => lines.some((line) => line.includes('available again on')))

  // An administrator may also terminate the connections of the leases.
  await query(one.url, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'usher-lease'")
  await until('both are back', async () =>
    (await query(one.url, "select from pg_locks where locktype = 'advisory' and mode = 'ShareLock'")).length === 2)
  await other.stop()
  t.match(await query(one.url, 'select * from kept'), [{ seven: 7 }])
  await one.stop()
  t.equal(await isDown(dataDir), true)
})

/** Kills the server and listens on its port. */
async function takePort (t: Test, dataDir: string, url: string): Promise<Server> {
  process.kill(await postmaster(dataDir), 'SIGKILL')
  const holder = createServer((socket) => socket.destroy())
  t.teardown(() => { holder.close() })
  return until('the port is free for the test', async () => {
    holder.listen(Number(new URL(url).port), '127.0.0.1')
    await once(holder, 'listening')
    return holder
  })
}

t.test('a lost server comes back on its port after another program has released it', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const lines: string[] = []
  const one = await start(t, dataDir, { tcp: true, log: (line) => lines.push(line) })
  const port = Number(new URL(one.tcpUrl!).port)
  const holder = await takePort(t, dataDir, one.tcpUrl!)
  await until('the port is waited for', async () =>
    lines.some((line) => line.includes(`port ${port} is taken by another program`)))
  holder.close()
  await until('it is back', async () => lines.some((line) => line.includes('available again on')))
  t.match(await query(one.tcpUrl!, 'select 1 as one'), [{ one: 1 }])
  t.equal((await start(t, dataDir)).url, one.url)
  t.match(await query(one.url, 'select 1 as one'), [{ one: 1 }])
})

t.test('a start chooses another port if that of the last server is taken, and other nodes log it', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const lines: string[] = []
  const one = await start(t, dataDir, { tcp: true, log: (line) => lines.push(line) })
  await takePort(t, dataDir, one.tcpUrl!)
  const other = await start(t, dataDir, { tcp: true })
  t.not(other.tcpUrl, one.tcpUrl)
  t.match(await query(other.tcpUrl!, 'select 1 as one'), [{ one: 1 }])
  await until('the other node logs it', async () =>
    lines.some((line) => /this node still connects to .+: restart the node/.test(line)))
})

t.test('a server that cannot be started again is retried until the obstacle is gone', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const lines: string[] = []
  const server = await start(t, dataDir, { log: (line) => lines.push(line), retryMs: 10 })
  const pid = await postmaster(dataDir)
  const [global, away] = ['global', 'away'].map((name) => join(dataDir, 'postgres/data', name)) as [string, string]
  await rename(global, away)
  process.kill(pid, 'SIGKILL')
  const failed = await until('it says so', async () => lines.find((line) => line.includes('does not run in')))
  t.match(failed, /does not run in .+ \(.*global.*\): see .+log, or set DATABASE_URL\.$/)
  await until('it says so again', async () => lines.filter((line) => line === failed).length > 1)
  await rm(global, { recursive: true, force: true })
  await rename(away, global)
  await until('it is back', async () => lines.some((line) => line.includes('available again on')))
  t.match(await query(server.url, 'select 1 as one'), [{ one: 1 }])
})

t.test('a stop while the server cannot be started again ends the attempts', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const lines: string[] = []
  const server = await start(t, dataDir, { log: (line) => lines.push(line), retryMs: 600_000 })
  const pid = await postmaster(dataDir)
  await rm(join(dataDir, 'postgres/data/global'), { recursive: true })
  process.kill(pid, 'SIGKILL')
  await until('it says so', async () => lines.some((line) => line.includes('does not run in')))
  await server.stop()
  t.match(lines.at(-1), /left running for the nodes that use it/)
})

t.test('a stop while the server is starting again leaves no server behind', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const server = await start(t, dataDir)
  const pid = await postmaster(dataDir)
  process.kill(pid, 'SIGKILL')
  const starting =
    await until('another one starts', async () => await postmaster(dataDir) !== pid && postmaster(dataDir))
  process.kill(starting, 'SIGSTOP')
  const stopped = server.stop()
  process.kill(starting, 'SIGCONT')
  await stopped
  t.equal(await isDown(dataDir), true)
})

t.test('a stop does not fail if the server is not running', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const server = await start(t, dataDir)
  process.kill(await postmaster(dataDir), 'SIGKILL')
  await server.stop()
})

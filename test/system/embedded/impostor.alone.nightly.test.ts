import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { readRunning } from '../../../node/embedded/cluster.ts'
import { prepareFolder } from '../../helpers/database.ts'
import { folder, isDown, kill, otherNode, postmaster, query, start } from '../../helpers/embedded.ts'
import { startNode, stopNode } from '../../helpers/node.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'

t.jobs = 4

// The message with which a server asks for a password in clear text.
const CLEARTEXT = '520000000800000003'

/**
 * Runs a program of another user of this machine, which tries to take the place of the server: it listens on the port,
 * and on the socket. It asks everybody for a password in clear text. Resolves with what it could not do, and with
 * everything it has received so far.
 */
async function startImpostor (
  t: Test, dataDir: string, port: number
): Promise<{ refused: string[], received: () => Promise<string> }> {
  const code = `
    import { rmSync } from 'node:fs'
    import { createServer } from 'node:net'
    const [socket, port] = ${JSON.stringify([join(dataDir, `postgres/data/.s.PGSQL.${port}`), port])}
    if (process.getuid() === 0) {
      process.setgroups([])
      process.setgid(65533)
      process.setuid(65533)
    }
    let received = ''
    const answer = (client) => client.on('error', () => {}).on('data', (data) => {
      received += data.toString('latin1')
      client.write(Buffer.from('${CLEARTEXT}', 'hex'))
    })
    const refused = []
    try { rmSync(socket) } catch ({ code }) { refused.push('rm: ' + code) }
    for (const [name, ...place] of [['socket', socket], ['port', port, '127.0.0.1']]) {
      await new Promise((resolve) => createServer(answer).once('error', ({ code }) => resolve(refused.push(name + ': ' + code))).listen(...place, resolve))
    }
    console.log(JSON.stringify(refused))
    process.stdin.on('data', () => console.log(JSON.stringify(received))).once('end', () => process.exit())`
  const child = spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, '--input-type=module', '-e', code], {
    cwd: '/', stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(async () => {
    child.stdin.end()
    if (child.exitCode === null) await once(child, 'exit')
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value as string)
  return {
    refused: await next(),
    async received () {
      child.stdin.write('\n')
      return next()
    },
  }
}

// Only root can run a program as another user.
const others = process.getuid?.() === 0 ? t.test : () => {}

others('8 after a crash of node and server, another user of the machine gets no password, and the node starts', { buffered: true }, async (t) => {
  // The path of the socket must not be too long for the other program.
  const cwd = await prepareFolder(t, temporaryFolder())
  const settings = { DATA_DIR: cwd, ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: 'horse battery staple' }
  const node = await startNode(t, { cwd, settings })
  const pid = await postmaster(cwd)
  node.child.kill('SIGKILL')
  await node.ended
  process.kill(pid, 'SIGKILL')
  const { port } = (await readRunning({ data: join(cwd, 'postgres/data') }))!
  const { refused, received } = await startImpostor(t, cwd, port)
  t.same(refused.slice(0, 2), ['rm: EACCES', 'socket: EACCES'])

  const again = await startNode(t, { cwd, settings })
  t.match(await again.login({ email: settings.ADMIN_EMAIL, password: settings.ADMIN_PASSWORD }), { token: String })
  t.equal(await received(), '', 'not even the name of the user')
  t.equal(await stopNode(again), 0)
})

others('8 after a crash of a server with a port, another program on that port gets no password', { buffered: true }, async (t) => {
  for (const tcp of [false, true]) {
    const dataDir = await prepareFolder(t, temporaryFolder())
    const node = await otherNode(t, dataDir, { tcp: true })
    const { port, password } = new URL((await node.server()).tcpUrl!)
    await kill(node.child)
    process.kill(await postmaster(dataDir), 'SIGKILL')
    const { refused, received } = await startImpostor(t, dataDir, Number(port))
    t.same(refused, ['rm: EACCES', 'socket: EACCES'], 'it has the port')
    const second = await start(t, dataDir, { tcp })
    t.match(await query(second.url, 'select 1 as one'), [{ one: 1 }])
    t.notMatch(await received(), password)
    if (tcp) {
      t.not(new URL(second.tcpUrl!).port, port)
      await t.rejects(
        query(`postgres://usher:${password}@127.0.0.1:${port}/usher?require_auth=scram-sha-256`, 'select 1'),
        { code: 'SCRAM_REQUIRED' }
      )
      t.match(await received(), /usher/, 'a client that comes later does not send it either')
      t.notMatch(await received(), password)
    }
  }
})

t.test('14.3 a database of a checkout that only used a port stops the start with a sentence, and nothing changes', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const access = join(dataDir, 'postgres/data/pg_hba.conf')
  const former = 'host all usher 127.0.0.1/32 scram-sha-256\n'
  await writeFile(access, former)
  await t.rejects(start(t, dataDir), { message: /is that of a checkout of Usher from before release 0\.1\.0.* Choose another DATA_DIR/ })
  t.equal(await readFile(access, 'utf8'), former)
  t.equal(await isDown(dataDir), true)
})

// --- paths ----------------------------------------------------------------------------------------------

t.test('8 the path of DATA_DIR may be longer than that of a Unix socket, and have any characters', { buffered: true }, async (t) => {
  for (const name of ['long'.repeat(40), 'a, "b" \'c\' :1@%2F?x=é']) {
    const dataDir = join(folder(t), name)
    await mkdir(dataDir)
    await prepareFolder(t, dataDir)
    const server = await start(t, dataDir)
    t.match(await query(server.url, 'select 1 as one'), [{ one: 1 }])
    const node = await startNode(t, { cwd: dataDir, settings: { DATA_DIR: dataDir } })
    t.equal((await node.fetch('/health/ready')).status, 200)
    t.equal(await stopNode(node), 0)
    await server.stop()
  }
})

t.test('8 a database that belongs to another user, or that others can write to, is not used', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const data = join(dataDir, 'postgres/data')
  await chmod(data, 0o777)
  await t.rejects(start(t, dataDir), {
    message: /cannot be used, because it belongs to another user, or others can write to this folder/,
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { prepareFolder } from '../../helpers/database.ts'
import { messagesIn, nodeCommand } from '../../helpers/node.ts'

const root = join(import.meta.dirname, '../../..')

t.jobs = 2

/** Runs `npm start` in its own process group, as a terminal does. Resolves when the node listens. */
async function npmStart (t: Test) {
  const dataDir = await prepareFolder(t)
  const { env: inherited } = nodeCommand([])
  const env = {
    ...inherited, PORT: '0', DATA_DIR: dataDir, ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: 'horse battery staple',
  }
  const npm = spawn('env', ['-u', 'NODE_OPTIONS', 'npm', 'start'], {
    cwd: root, env, detached: true, stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  // All processes that npm has started hold the other end of this pipe, so it closes when all of them have ended.
  const ended = once(npm, 'close')
  const listens = new Promise<void>((resolve) => {
    npm.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('Usher listens on')) resolve()
    })
  })
  let isGone = false
  npm.once('close', () => { isGone = true })
  t.teardown(() => { if (!isGone) process.kill(-npm.pid!, 'SIGKILL') })
  await Promise.race([listens, ended.then(() => { throw new Error(output) })])
  return { npm, ended, postmaster: join(dataDir, 'postgres/data/postmaster.pid'), output: () => messagesIn(output) }
}

t.test('8 npm start: SIGTERM to the npm process stops the node and PostgreSQL', { buffered: true }, async (t) => {
  const { npm, ended, postmaster, output } = await npmStart(t)
  t.ok(existsSync(postmaster))
  npm.kill('SIGTERM')
  await ended
  t.match(output(), 'Usher stops on SIGTERM\n')
  t.notOk(existsSync(postmaster))
})

t.test('8 npm start: Ctrl-C stops the node and PostgreSQL', { buffered: true }, async (t) => {
  const { npm, ended, postmaster, output } = await npmStart(t)
  t.ok(existsSync(postmaster))
  process.kill(-npm.pid!, 'SIGINT')
  await ended
  t.match(output(), 'Usher stops on SIGINT\n')
  t.notMatch(output(), 'at once')
  t.notOk(existsSync(postmaster))
})

t.test('8 a version of Node.js that is too old gets one sentence, although it cannot read TypeScript', async (t) => {
  const { start } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts
  const [, check = ''] = /^node --require (\S+) node\/server\.ts$/.exec(start) ?? []
  const run = async (version: string, cwd = root) => {
    const code = `Object.defineProperty(process.versions, 'node', { value: '${version}' }); require('${check}')`
    const child = spawn(
      'env', ['-u', 'NODE_OPTIONS', process.execPath, '-e', code], { cwd, stdio: ['ignore', 'ignore', 'pipe'] }
    )
    const [said, [status]] = await Promise.all([text(child.stderr), once(child, 'close')])
    return { said: messagesIn(said), status }
  }
  t.same(await run('20.20.2'), { said: 'Usher needs Node.js 22.18 or later; this is 20.20.2.\n', status: 1 })
  t.same(await run('22.18.0'), { said: '', status: 0 })
  const clone = t.testdir({ node: { 'check-version.cjs': readFileSync(join(root, check)) } })
  t.same(await run('20.20.2', clone), {
    said: 'Usher needs Node.js 22.18 or later; this is 20.20.2. Run "npm ci" first: it brings Node.js 24.\n', status: 1,
  })
})

t.test('14.5 a node that npm start has started stops when its shell ends without passing a signal on', { buffered: true }, async (t) => {
  const { npm, ended, postmaster, output } = await npmStart(t)
  const [child = 0] = readFileSync(`/proc/${npm.pid}/task/${npm.pid}/children`, 'utf8').trim().split(' ').map(Number)
  process.kill(npm.pid!, 'SIGKILL')
  if (!readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('node\0')) process.kill(child, 'SIGKILL')
  await ended
  t.match(output(), 'Usher stops on SIGTERM\n')
  t.notOk(existsSync(postmaster))
})

import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { writeFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { createDatabase } from '../helpers/database.ts'
import { spawnNode, stopNode } from '../helpers/node.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'

// Prints each datagram as a line. What is passed along with one, such as the descriptor of a barrier, is closed.
const RECEIVER = `
import json, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('[]', flush=True)
while True: print(json.dumps(receiver.recv(65536).decode().strip().split('\\n')), flush=True)
`

type Message = Record<string, string>

/** Takes the place of systemd. Returns the path of its socket and the messages so far, without barriers. */
async function receive (t: Test): Promise<{ socket: string, messages: Message[] }> {
  const socket = join(temporaryFolder(), 'notify')
  const receiver = spawn('python3', ['-c', RECEIVER, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => receiver.kill())
  const messages: Message[] = []
  const lines = createInterface(receiver.stdout)
  await once(lines, 'line')
  lines.on('line', (line) => {
    const message = Object.fromEntries((JSON.parse(line) as string[]).map((text) => text.split(/=(.*)/s).slice(0, 2)))
    if (!('BARRIER' in message)) messages.push(message)
  })
  return { socket, messages }
}

const settings = { DATABASE_URL: await createDatabase(t), SECRET: 'a secret of many words' }

t.test('14.1 systemd learns when a node with workers serves, reloads, cannot reload, and stops', async (t) => {
  const { socket, messages } = await receive(t)
  const cwd = t.testdir()
  const node = spawnNode(t, { cwd, settings: { ...settings, WORKERS: '2', NOTIFY_SOCKET: socket } })
  const got = (count: number) => until(`there are ${count} messages`, () => messages.length >= count)
  await got(1)
  t.match(node.stderr, 'listens on', 'not before it serves')
  t.strictSame(messages, [{ READY: '1', STATUS: '2 workers serve' }])

  const before = process.hrtime.bigint() / 1000n
  node.child.kill('SIGHUP')
  await got(3)
  t.match(messages[1], { RELOADING: '1', STATUS: 'The workers are replaced' })
  const at = BigInt(messages[1]!['MONOTONIC_USEC']!)
  t.ok(at >= before && at <= process.hrtime.bigint() / 1000n)
  t.strictSame(messages[2], { READY: '1', STATUS: '2 workers serve, all of them replaced' })

  await writeFile(join(cwd, '.env'), 'UPLOAD_MAX_BYTES=none\n')
  node.child.kill('SIGHUP')
  await got(5)
  t.match(messages[3], { RELOADING: '1' })
  t.match(messages[4], { READY: '1', STATUS: /^The last reload FAILED: a new worker could not start/ })

  t.equal(await stopNode(node), 0)
  t.strictSame(messages.slice(5), [{ STOPPING: '1', STATUS: 'The node stops' }])
})

t.test('14.1 systemd learns the state of a node of one process, and a node without systemd-notify serves nevertheless', async (t) => {
  const { socket, messages } = await receive(t)
  const node = spawnNode(t, { cwd: t.testdir(), settings: { ...settings, NOTIFY_SOCKET: socket } })
  await until('it is ready', () => messages.length === 1)
  t.match(messages, [{ READY: '1', STATUS: /^Usher listens on http:\/\/localhost:\d+$/ }])
  t.equal(await stopNode(node), 0)
  t.match(messages[1], { STOPPING: '1' })

  const without = spawnNode(
    t, { cwd: t.testdir(), settings: { ...settings, NOTIFY_SOCKET: socket }, inject: "process.env.PATH = '/none'" }
  )
  await without.said('listens on')
  await until('it says so', () => without.stdout.includes('the program systemd-notify is missing, so use Type=exec'))
  t.equal(await stopNode(without), 0)
  t.equal(messages.length, 2)
})

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import t from 'tap'
import { createDatabase } from '../../helpers/database.ts'
import { logged, startNode } from '../../helpers/node.ts'
import { END, fieldPart, filePart, FORM } from '../../helpers/uploads.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('1.10 a node that may open no more files, or write no larger ones, says so, loses nothing, and recovers', async (t) => {
  const settings = {
    DATABASE_URL: await createDatabase(t),
    SECRET: 'a secret of many words',
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
  }
  const node = await startNode(t, { cwd: t.testdir(), settings })
  const { token } = await node.login(admin)
  // A node without files accepts no further connections.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const setLimit = (limit: string) => promisify(execFile)('prlimit', ['--pid', `${node.child.pid}`, limit])
  const lines = () => node.stdout.split('\n').slice(0, -1)
    .map((line) => JSON.parse(line) as { level: number, msg: string, err?: { code?: string } })
  const linesOf = (code: string) => lines().filter(({ err }) => err?.code === code)

  async function send (method: string, path: string, body?: Buffer) {
    const headers = { authorization: `Bearer ${token}`, ...body && { 'content-type': FORM } }
    const sent = request(`${node.url}${path}`, { agent, method, headers }).end(body)
    const [response] = await once(sent, 'response')
    const received = await text(response)
    return {
      status: response.statusCode,
      retryAfter: response.headers['retry-after'],
      received,
      code: () => JSON.parse(received).code,
    }
  }

  const upload = (content: string | Buffer) =>
    send('POST', '/api/uploads', Buffer.concat([filePart(content), fieldPart('description', 'x'), END]))

  const first = await upload('Hello')
  t.equal(first.status, 200)
  const { fileUrl } = JSON.parse(first.received)
  await setLimit('--nofile=3:')
  for (let attempt = 0; attempt < 3; attempt++) {
    const refused = await upload('Hello')
    t.match(refused, { status: 503, retryAfter: '1' })
    t.equal(refused.code(), 'OVERLOADED')
  }
  t.match(await send('GET', fileUrl), { status: 503, retryAfter: '1' }, 'reading a file')
  await logged(node, () => linesOf('EMFILE').length > 0)
  t.match(linesOf('EMFILE'), [{ level: 50, msg: /ulimit -n, or LimitNOFILE=/ }], 'one line of the log for all')
  await setLimit('--nofile=1024:')
  t.match(await send('GET', fileUrl), { status: 200, received: 'Hello' })

  await setLimit('--fsize=1000:')
  const large = await upload(Buffer.alloc(100_000))
  t.equal(large.status, 507)
  t.equal(large.code(), 'STORAGE_FULL')
  await logged(node, () => linesOf('EFBIG').length > 0)
  t.match(linesOf('EFBIG'), [{ level: 50, msg: 'There is no space for the file' }])
  await setLimit('--fsize=unlimited:')
  t.equal((await upload(Buffer.alloc(100_000))).status, 200)
})

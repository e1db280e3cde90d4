import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { prepareFolder } from '../../helpers/database.ts'
import { upgrade } from '../../helpers/frames.ts'
import { hostOf } from '../../helpers/graphql.ts'
import { startMailServer } from '../../helpers/mail.ts'
import { logged, startNode, stopNode } from '../../helpers/node.ts'
import { openSql } from '../../helpers/sql.ts'

const EVENTS = 'subscription { postCreated { content } }'
const CONTENT = 'x'.repeat(65_000)

t.jobs = 3

interface Asked { head: string, body?: string, length?: number }

/** Sends a request, or a part of it, and reads no more of the response than its first bytes. */
async function askAndStall (t: Test, host: string, { head, body = '', length = body.length }: Asked): Promise<void> {
  const { hostname, port } = new URL(`http://${host}`)
  const socket = connect(Number(port), hostname).on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(
    `${head.replace('\r\n', ' HTTP/1.1\r\nhost: x\r\n')}${length ? `content-length: ${length}\r\n` : ''}\r\n${body}`
  )
  if (length === body.length) await once(socket, 'data')
  socket.pause()
}

/** Returns requests that stay open because their clients neither read nor send. */
function stalled (authorization: string, fileUrl: string): Asked[] {
  const json = 'content-type: application/json\r\n'
  return [
    { head: `POST /graphql\r\naccept: text/event-stream\r\n${json}`, body: JSON.stringify({ query: EVENTS }) },
    { head: `GET ${fileUrl}\r\n` },
    {
      head: `POST /api/uploads\r\nauthorization: ${authorization}\r\ncontent-type: multipart/form-data; boundary=x\r\n`,
      body: '--x\r\n',
      length: 1000,
    },
  ]
}

async function upload (url: string, headers: { authorization: string }): Promise<string> {
  const form = new FormData()
  form.set('description', 'Large')
  form.set('file', new Blob([Buffer.alloc(10_000_000)]), 'large.bin')
  const response = await fetch(`${url}/api/uploads`, { method: 'POST', headers, body: form })
  return ((await response.json()) as { fileUrl: string }).fileUrl
}

t.test('8 a node stops in order even if clients stall: it sends remaining mail, then stops PostgreSQL', { buffered: true }, async (t) => {
  const cwd = await prepareFolder(t)
  let attempts = 0
  // The mail server greylists: it defers the first attempt.
  const mails = await startMailServer(t, () => attempts++ === 0 ? 451 : undefined)
  const admin = { email: 'root@example.com', password: 'horse battery staple' }
  const node = await startNode(t, {
    cwd,
    settings: {
      DATA_DIR: cwd,
      ADMIN_EMAIL: admin.email,
      ADMIN_PASSWORD: admin.password,
      SMTP_URL: mails.url,
      MAIL_FROM: 'usher@example.com',
      PASSWORD_URL: 'https://example.com/password',
    },
  })
  const { headers } = await node.login(admin)
  const authorization = headers.authorization!
  const fileUrl = await upload(node.url, { authorization })
  const host = new URL(node.url).host
  for (const asked of stalled(authorization, fileUrl)) await askAndStall(t, host, asked)
  const socket = await upgrade(t, host, { protocol: 'graphql-transport-ws' })
  await once(socket.socket, 'data')
  socket.socket.pause()
  await node.connect()
  await node.beginLogin(admin)
  const post = (content: string) => fetch(`${node.url}/graphql`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      query: 'mutation ($content: String!) { createPost(input: { title: "Unread", content: $content }) { id } }',
      variables: { content },
    }),
  })
  for (let count = 0; count < 200; count++) await post(CONTENT)
  await fetch(`${node.url}/api/auth/password-reset`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email: admin.email }),
  })
  await logged(node, () => node.stdout.includes('A mail could not be sent: another attempt follows'))

  t.equal(await stopNode(node), 0)
  t.equal((await mails.of(admin.email, 1)).length, 1, 'the deferred mail is sent')
  t.match(node.stdout, 'PostgreSQL: stopped')
  t.notOk((await readdir(join(cwd, 'postgres/data'))).includes('postmaster.pid'))
})

t.test('8 a node stops normally if its output is no longer read', { buffered: true }, async (t) => {
  const cwd = await prepareFolder(t)
  const node = await startNode(t, {
    cwd,
    settings: {
      DATA_DIR: cwd, LOG_LEVEL: 'debug', ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: 'horse battery staple',
    },
  })
  node.child.stdout!.destroy()
  node.child.stderr!.destroy()
  t.equal((await node.fetch('/api/users')).status, 200)
  t.equal(await stopNode(node), 0)
  t.notOk((await readdir(join(cwd, 'postgres/data'))).includes('postmaster.pid'))
})

t.test('8 the app of a host can close while clients of Usher stall', { buffered: true }, async (t) => {
  const usher = await createUsher(t, {}, { forceCloseConnections: false })
  const sql = openSql(t, usher)
  const host = await hostOf(usher)
  const fileUrl = await upload(`http://${host}`, usher.admin.headers)
  for (const asked of stalled(usher.admin.headers.authorization, fileUrl)) await askAndStall(t, host, asked)
  const socket = await upgrade(t, host, { protocol: 'graphql-transport-ws' })
  await once(socket.socket, 'data')
  socket.socket.pause()
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${usher.admin.id}, '', ${CONTENT} from generate_series(1, 200)`
  await usher.app.close()
  t.notOk(usher.app.server.listening)
})

import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { createUsher, sharedUsher, type TestUsher } from '../helpers/app.ts'
import { listen, withoutDate } from '../helpers/wire.ts'

const TYPES = [
  undefined, 'application/json', 'application/merge-patch+json', 'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x', 'application/offset+octet-stream',
]
const UNKNOWN = '01a1fb1f-9a52-7253-96f9-fbe7729173ff'
const ROUTES = [
  'POST /api/users', `PUT /api/users/${UNKNOWN}`, `PATCH /api/users/${UNKNOWN}`, `DELETE /api/users/${UNKNOWN}`,
  'POST /api/auth/login', 'PUT /api/auth/password', 'POST /graphql', 'POST /api/uploads', `PATCH /api/uploads/${UNKNOWN}`,
  'POST /api/uploads/resumable', `PATCH /api/uploads/resumable/${UNKNOWN}`, 'POST /login', 'POST /api/unknown',
  'GET /api/users?limit=1', 'GET /api/protected',
]

const usual = await sharedUsher()
// Node.js ignores the option before 24.12.
const closed = await createUsher(t, usual.options, { http: { optimizeEmptyRequests: true } })
const servers = await Promise.all([usual, closed].map(async (usher) => ({ usher, ...await listen(usher.app) })))

/** Sends bytes and returns everything received until the server closes the connection. */
async function exchange (port: number, bytes: string): Promise<string> {
  const client = connect(port, '127.0.0.1').setEncoding('latin1')
  client.write(bytes)
  let received = ''
  client.on('data', (chunk) => { received += chunk })
  await once(client, 'close')
  return received
}

/** Sends a request that announces no body. Returns the response without what differs between two servers. */
async function answerOf ({ usher, port }: { usher: TestUsher, port: number }, route: string, type: string | undefined) {
  const lines = [
    `${route} HTTP/1.1`, 'host: x', 'connection: close', `authorization: ${usher.admin.headers.authorization}`,
    'tus-resumable: 1.0.0', 'upload-length: 0', ...type === undefined ? [] : [`content-type: ${type}`],
  ]
  const response = await exchange(port, `${lines.join('\r\n')}\r\n\r\n`)
  return withoutDate(response).replaceAll(/[0-9a-f-]{36}|^etag: .*\r\n/gm, '')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|upload-expires: .*|"token":"[^"]*"/g, '')
}

t.test('1.9 a request without a body gets the same response if the server has closed its stream already', async (t) => {
  for (const route of ROUTES) {
    for (const type of TYPES) {
      const [expected, answer] = [await answerOf(servers[0]!, route, type), await answerOf(servers[1]!, route, type)]
      t.match(expected, /^HTTP\/1\.1 \d{3} /, `${route} ${type} has a response`)
      t.equal(answer, expected, `${route} ${type}`)
    }
  }
})

t.test('1.13 requests without bodies that share a connection are answered in order', async (t) => {
  const get = (path: string, last = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${last}\r\n`
  const requests = [get('/api/users?limit=1'), get(`/api/users/${UNKNOWN}`), get('/api/users?limit=2', 'connection: close\r\n')]
  const responses = await exchange(servers[1]!.port, requests.join(''))
  t.strictSame(responses.match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 200'])
})

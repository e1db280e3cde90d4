import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { uniqueSchema } from '../helpers/database.ts'
import { createMailer } from '../helpers/mail.ts'

const UNKNOWN = '0190a0b0-0000-7000-8000-000000000000'

// A body that each operation can parse completely.
const body = {
  name: 'Somebody',
  email: 'somebody@example.com',
  password: 'another long passphrase',
  currentPassword: 'a wrong one',
  token: 'x'.repeat(43),
  query: '{ me { id } }',
}

const usher = await createUsher(t, { mailer: createMailer().mailer })
// The path is in the temporary folder, because the path of a Unix socket has a limited length.
const socketPath = join(tmpdir(), uniqueSchema('socket'))
await usher.app.listen({ path: socketPath })

async function send (
  method: string, path: string, headers: Record<string, string>, payload: object = body
): Promise<IncomingMessage> {
  const client = request({ socketPath, path, method, headers })
  client.end(headers['content-type'] ? JSON.stringify(payload) : undefined)
  return (await once(client, 'response') as [IncomingMessage])[0]
}

t.test('4 a client that connects over a Unix socket has no address', async (t) => {
  const { email, password, headers } = await usher.createUser()
  const response = await send('POST', '/api/auth/login', { 'content-type': 'application/json' }, { email, password })
  t.equal(response.statusCode, 200)
  await text(response)
  t.match(
    (await usher.inject('GET', '/api/auth/sessions', { headers })).json(), [{ address: '' }, { address: '127.0.0.1' }]
  )
})

t.test('1.3 every route works over a Unix socket, where a client has no address', async (t) => {
  const other = await usher.createUser()
  const { paths } = await json(await send('GET', '/docs/json', {})) as {
    paths: Record<string, Record<string, { requestBody?: object }>>
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody }]) =>
      ({ method: method.toUpperCase(), path: path.replace(/\{\w+\}/, UNKNOWN), hasBody: requestBody !== undefined })))
  operations.push({ method: 'POST', path: '/graphql', hasBody: true })
  t.ok(operations.length > 15)
  for (const { method, path, hasBody } of operations) {
    // A new login for each route, because some routes end the session.
    const { headers, cookie } = await usher.login(usher.admin)
    const response = await send(
      method, path, { ...headers, cookie, ...hasBody && { 'content-type': 'application/json' } }
    )
    const answer = await text(response)
    t.ok(
      response.statusCode! < 500 && (response.statusCode !== 401 || path === '/api/auth/login'),
      `${method} ${path}: ${response.statusCode} ${answer.slice(0, 80)}`
    )
  }

  t.test('4.6 changing the password works too', async (t) => {
    const headers = { ...other.headers, 'content-type': 'application/json' }
    const response = await send(
      'PUT', '/api/auth/password', headers, { currentPassword: other.password, password: 'yet another passphrase' }
    )
    t.equal(response.statusCode, 204)
    response.resume()
  })
})

import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { createDatabase } from '../../helpers/database.ts'
import { startNode, type ServingNode } from '../../helpers/node.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const guide = readFileSync(join(import.meta.dirname, '../../../docs/host/tokens.md'), 'utf8')
const files = Object.fromEntries(
  [...guide.matchAll(/^`([\w-]+\.js)`:\n\n```js\n([^]*?)^```/gm)].map(([, name, text]) => [name!, text!])
)

type Verify = (token: string) => Promise<{ sub: string, role: string }>

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Returns what the recipe of a file says about a token: the id of its user, or that it is refused. */
async function load (t: Test, folder: string, name: string): Promise<(token: string) => Promise<string>> {
  const { verifyToken, authenticate } = await import(pathToFileURL(join(folder, name)).href) as {
    verifyToken: Verify
    authenticate: (request: object, response: object, next: (error?: Error) => void) => void
  }
  if (verifyToken) return async (token) => verifyToken(token).then(({ sub }) => sub, () => 'refused')
  const server = createServer((request, response) => authenticate(request, response, (error) => {
    const { user } = request as { user?: { id: string } }
    response.writeHead(error ? 500 : 200).end(error?.message ?? user!.id)
  })).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return async (token) => {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    return response.status === 401 ? 'refused' : response.text()
  }
}

async function startWith (t: Test, algorithm: string): Promise<ServingNode> {
  const settings = {
    DATABASE_URL: await createDatabase(t),
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    SIGNING_ALGORITHM: algorithm,
  }
  return startNode(t, { cwd: temporaryFolder(), settings })
}

/** Returns tokens that no service may accept. */
function forge (token: string, publicKeys: string[]): Record<string, string> {
  const { kid, alg } = decodeProtectedHeader(token)
  const [head, body, signature] = token.split('.') as [string, string, string]
  const claims = decodeJwt(token)
  const header = { alg: alg!, typ: 'JWT', kid }
  const compact = (header: object, payload: object, key: KeyObject) => {
    const input = `${base64url(header)}.${base64url(payload)}`
    return `${input}.${sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  const { privateKey: other } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const tokens: Record<string, string> = {
    'alg none': `${base64url({ alg: 'none', typ: 'JWT', kid })}.${body}.`,
    'alg none with a signature': `${base64url({ alg: 'none', typ: 'JWT', kid })}.${body}.${signature}`,
    'another payload': `${head}.${base64url({ ...claims, role: 'root' })}.${signature}`,
    'another key': compact(header, claims, other),
    'another key with another kid': compact({ ...header, kid: 'unknown' }, claims, other),
    'no kid': compact({ alg, typ: 'JWT' }, claims, other),
    'no token': 'token',
  }
  for (const [index, key] of publicKeys.entries()) {
    const input = `${base64url({ alg: 'HS256', typ: 'JWT', kid })}.${body}`
    tokens[`HS256 with the public key (${index})`] =
      `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
  }
  return tokens
}

t.test('4.9 the recipes of docs/host/tokens.md verify tokens of a node', { buffered: true }, async (t) => {
  const node = await startWith(t, 'ES256')
  process.env['USHER_URL'] = node.url
  const { token } = await node.login(admin)
  const { sub } = decodeJwt(token)
  t.equal(decodeProtectedHeader(token).alg, 'ES256')
  const { keys } = await (await node.fetch('/.well-known/jwks.json')).json() as { keys: object[] }
  const forged = forge(token, keys.map((key) => JSON.stringify(key)))
  // Below the tree, so that they find the libraries.
  const folder = t.testdir(files)
  t.same(Object.keys(files).sort(), ['fast-jwt.js', 'jose.js', 'jsonwebtoken.js', 'passport-jwt.js'])
  for (const name of Object.keys(files)) {
    const verify = await load(t, folder, name)
    t.equal(await verify(token), sub, name)
    for (const [what, bad] of Object.entries(forged)) t.equal(await verify(bad), 'refused', `${name}: ${what}`)
    t.equal(await verify(token), sub, `${name}, once more`)
  }

  t.test('4.9 the recipe of jose verifies EdDSA, too', async (t) => {
    const node = await startWith(t, 'EdDSA')
    process.env['USHER_URL'] = node.url
    const { token } = await node.login(admin)
    t.equal(decodeProtectedHeader(token).alg, 'EdDSA')
    const verify = await load(t, t.testdir(files), 'jose.js')
    t.equal(await verify(token), decodeJwt(token).sub)
    const { keys } = await (await node.fetch('/.well-known/jwks.json')).json() as { keys: object[] }
    const forged = forge(token, keys.map((key) => JSON.stringify(key)))
    for (const [what, bad] of Object.entries(forged)) t.equal(await verify(bad), 'refused', what)
  })
})

import { execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { createMailer } from '../helpers/mail.ts'
import { cookiesOf } from '../helpers/passkeys.ts'
import { findPort } from '../helpers/port.ts'
import { errorIn, openProviders, ORIGIN } from '../helpers/provider.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'

// Glewlwyd, an OpenID provider in C, from Debian's package: another one than that of `npm test`.
const PROGRAM = '/usr/bin/glewlwyd'
const TABLES = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3'

/** Starts Glewlwyd with a user and a client. Returns its issuer, and a function that logs the user in. */
async function startGlewlwyd (t: Test) {
  if (!existsSync(PROGRAM)) throw new Error('glewlwyd is missing: run scripts/install-release.sh')
  const folder = temporaryFolder()
  const port = await findPort()
  const base = `http://127.0.0.1:${port}`
  const database = new DatabaseSync(join(folder, 'db'))
  database.exec(readFileSync(TABLES, 'utf8'))
  database.close()
  const config = readFileSync('/etc/glewlwyd/glewlwyd.conf', 'utf8')
    .replace(/^port=.*/m, `port=${port}`).replace(/^external_url=.*/m, `external_url="${base}/"`)
    .replace(/^log_mode=.*/m, 'log_mode="console"')
    .replace(/^@include.*/m, `database = { type = "sqlite3"; path = "${join(folder, 'db')}"; };`)
  writeFileSync(join(folder, 'conf'), config)
  const child = spawn(PROGRAM, [`--config-file=${join(folder, 'conf')}`], { stdio: 'ignore' })
  t.teardown(async () => {
    child.kill()
    if (child.exitCode === null) await once(child, 'exit')
  })
  const send = (method: string, path: string, body?: object, cookie = '') => fetch(`${base}${path}`, {
    method,
    redirect: 'manual',
    headers: { cookie, ...body && { 'content-type': 'application/json' } },
    ...body && { body: JSON.stringify(body) },
  })
  const logIn = async (username: string, password: string) => {
    const response = await send('POST', '/api/auth/', { username, password })
    return response.headers.get('set-cookie')?.split(';', 1)[0]
  }
  await until('Glewlwyd', () => logIn('admin', 'password').then((cookie) => cookie !== undefined, () => false), 50)
  const admin = await logIn('admin', 'password')
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const create = async (path: string, body: object) => {
    const response = await send('POST', path, body, admin)
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  const issuer = `${base}/api/oidc`
  await create('/api/user/', {
    username: 'ada',
    name: 'Ada Lovelace',
    email: 'ada@example.com',
    password: 'a password of Ada',
    enabled: true,
    scope: ['openid', 'g_profile'],
  })
  await create('/api/client/', {
    client_id: 'usher',
    name: 'Usher',
    confidential: true,
    password: 'a-secret-of-Usher',
    enabled: true,
    redirect_uri: [`${ORIGIN}/api/auth/providers/glewlwyd/callback`],
    authorization_type: ['code'],
    scope: ['openid'],
    token_endpoint_auth_method: ['client_secret_post'],
  })
  await create('/api/mod/plugin/', {
    module: 'oidc',
    name: 'oidc',
    display_name: 'OpenID Connect',
    enabled: true,
    parameters: {
      iss: issuer,
      'jwt-type': 'rsa',
      'jwt-key-size': '256',
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      cert: publicKey.export({ type: 'spki', format: 'pem' }),
      'access-token-duration': 3600,
      'refresh-token-duration': 1_209_600,
      'code-duration': 600,
      'refresh-token-rolling': true,
      'allow-non-oidc': false,
      'auth-type-code-enabled': true,
      'auth-type-refresh-enabled': true,
      'pkce-allowed': true,
      'jwks-show': true,
      'subject-type': 'public',
      'name-claim': 'mandatory',
      'email-claim': 'mandatory',
      scope: [],
      claims: [],
    },
  })
  return {
    issuer,
    async authorize (url: string): Promise<Record<string, string>> {
      const cookie = await logIn('ada', 'a password of Ada')
      await send('PUT', '/api/auth/grant/usher', { scope: 'openid' }, cookie)
      const response = await fetch(`${url}&g_continue`, { redirect: 'manual', headers: { cookie: cookie! } })
      return Object.fromEntries(new URL(response.headers.get('location')!).searchParams)
    },
  }
}

t.test('16.5 a login at Glewlwyd, once more, and with a code that was used', async (t) => {
  t.comment(execFileSync('dpkg-query', ['--show', 'glewlwyd']).toString().trim())
  const glewlwyd = await startGlewlwyd(t)
  const inbox = createMailer()
  const { begin, finish, inject, sessionOf } = await openProviders(t, {
    mailer: inbox.mailer,
    providers: {
      glewlwyd: {
        issuer: glewlwyd.issuer,
        clientId: 'usher',
        clientSecret: 'a-secret-of-Usher',
        scopes: ['openid'],
        signUp: true,
        allowPrivateAddresses: true,
      },
    },
  })
  // It does not say whether the address is verified.
  const unproved = await begin('glewlwyd')
  const newcomer = await finish('glewlwyd', await glewlwyd.authorize(unproved.url), unproved.cookie)
  t.equal(errorIn(newcomer), 'EMAIL_UNPROVEN')
  const confirmed = await inject('POST', '/api/auth/sign-up/confirm', {
    headers: { cookie: cookiesOf(newcomer) }, payload: { token: await inbox.token('ada@example.com') },
  })
  t.equal(confirmed.statusCode, 201)
  const begun = await begin('glewlwyd', { returnTo: '/notes' })
  const response = await glewlwyd.authorize(begun.url)
  const done = await finish('glewlwyd', response, begun.cookie)
  t.strictSame([done.statusCode, done.headers.location], [303, '/notes'])
  t.match((await sessionOf(done)).user, {
    id: confirmed.json().id, name: 'Ada Lovelace', email: 'ada@example.com', emailVerified: true,
  })
  const third = await begin('glewlwyd')
  const { state } = await glewlwyd.authorize(third.url)
  const replayed = await finish('glewlwyd', { ...response, state: state! }, third.cookie)
  t.equal(replayed.headers.location, '/login?error=PROVIDER_REJECTED', 'the code of another attempt')
})

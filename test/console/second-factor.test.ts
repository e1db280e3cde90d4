import t from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { createUsher } from '../helpers/app.ts'
import { cookieOf, withConsole } from '../helpers/console.ts'

const usher = await createUsher(t, { console: true })
const { inject, createUser } = usher
const { exchange, read, send } = withConsole(usher)
const STEP_MS = 30_000
const codeAt = (secret: string, steps = 0) => codeOf(secret, Math.floor(Date.now() / STEP_MS) + steps)

t.test('18.3 an admin with an authenticator app opens the console after a login with a code, and not without', async (t) => {
  const colleague = await createUser({ role: 'admin' })
  const { headers } = colleague
  const { secret } = (await inject('POST', '/api/auth/totp', { headers })).json()
  await inject('POST', '/api/auth/totp/confirm', { headers, payload: { code: codeAt(secret) } })
  const next = '/console/login?next=%2Fusers'
  const login = `/login?${new URLSearchParams({ returnTo: next })}`
  const first = await send(login, colleague)
  t.equal(first.statusCode, 401)
  t.equal(first.headers['set-cookie'], undefined, 'the password alone opens nothing')
  const [, challenge] = / name="challenge" value="([\w-]+)"/.exec(first.body) ?? []
  t.ok(challenge)
  const second = await send(`/login/second-factor?${new URLSearchParams({ returnTo: next })}`, {
    challenge, code: codeAt(secret, 1),
  })
  t.equal(second.headers.location, next)
  const opened = await exchange(cookieOf(second), { next: '/users' })
  t.equal(opened.headers.location, '/console/users')
  t.equal((await read('/console', cookieOf(opened))).statusCode, 200)
})

t.test('18.3 a session from before the authenticator app does not open the console', async (t) => {
  const colleague = await createUser({ role: 'admin' })
  const { cookie } = await usher.login(colleague)
  const { headers } = colleague
  const { secret } = (await inject('POST', '/api/auth/totp', { headers })).json()
  await inject('POST', '/api/auth/totp/confirm', { headers, payload: { code: codeAt(secret) } })
  const response = await exchange(cookie)
  t.equal(response.headers['set-cookie'], undefined)
  t.match(`${response.headers.location}`, /^\/login\?(confirm&)?returnTo=/)
})

import { randomUUID } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { codeOf } from '../../../plugins/sign-in/totp/codes.ts'
import { createUsher, type LoggedIn } from '../../helpers/app.ts'
import { withConsole } from '../../helpers/console.ts'

const STEP_MS = 30_000
const codeAt = (secret: string, steps = 0) => codeOf(secret, Math.floor(Date.now() / STEP_MS) + steps)
const BURST = 3
// Permits no further attempt during a test, however long that takes.
const oneBurst = { burst: BURST, perMinute: 0.01 }
const generous = { burst: 10_000, perMinute: 10_000 }
const WRONG = 'a wrong password'

const usher = await createUsher(t, {
  console: true, throttle: { account: oneBurst, address: generous, secondFactor: generous },
})
const { inject, createUser, admin } = usher
const { send } = withConsole(usher)

interface Check {
  /** Sends the right password only if the name of the check says so. */
  attempt (user: LoggedIn): Promise<LightMyRequestResponse>
  status: number
  action: string
  prepare? (user: LoggedIn): Promise<unknown>
}

const addApp = async ({ headers }: LoggedIn): Promise<string> => {
  const { secret } = (await inject('POST', '/api/auth/totp', { headers })).json()
  await inject('POST', '/api/auth/totp/confirm', { headers, payload: { code: codeAt(secret) } })
  return secret
}

// Every place where a password is checked, and whether it is right or wrong for somebody who gets nothing by it.
const checks: Record<string, Check> = {
  'a login': {
    attempt: ({ email }) => inject('POST', '/api/auth/login', { payload: { email, password: WRONG } }),
    status: 401,
    action: 'login.failed',
  },
  'the form of the login': {
    attempt: ({ email }) => send('/login', { email, password: WRONG }),
    status: 401,
    action: 'login.failed',
  },
  'the console': {
    attempt: ({ email }) => send('/console/login', { email, password: WRONG }),
    status: 401,
    action: 'login.failed',
  },
  'the console, with the right password of a user': {
    attempt: ({ email, password }) => send('/console/login', { email, password }),
    status: 401,
    action: 'login.failed',
  },
  'the console, with the right password of a user with an app': {
    attempt: ({ email, password }) => send('/console/login', { email, password }),
    status: 401,
    action: 'login.failed',
    prepare: addApp,
  },
  'a step-up': {
    attempt: ({ headers }) => inject('POST', '/api/auth/step-up', { headers, payload: { password: WRONG } }),
    status: 403,
    action: 'step-up.failed',
  },
  'a change of the password': {
    attempt: ({ headers }) => inject('PUT', '/api/auth/password', {
      headers, payload: { currentPassword: WRONG, password: `new ${randomUUID()}` },
    }),
    status: 403,
    action: 'password.change-failed',
  },
}

for (const [name, { attempt, status, action, prepare }] of Object.entries(checks)) {
  t.test(`4 ${name}: each failure is in the account log and counts toward the limit of the account`, async (t) => {
    const user = await createUser()
    await prepare?.(user)
    for (let count = 0; count < BURST; count++) {
      const { statusCode, headers } = await attempt(user)
      t.equal(statusCode, status)
      t.equal(headers['set-cookie'], undefined)
    }
    const limited = await attempt(user)
    t.equal(limited.statusCode, 429)
    t.match(limited.headers, { 'retry-after': /^\d+$/ })
    const { email, password } = user
    const right = await inject('POST', '/api/auth/login', { payload: { email, password } })
    t.equal(right.statusCode, 429, 'the right password is not tried any more, here and elsewhere')
    const log = await inject('GET', `/api/audit?user=${user.id}&action=${action}`, { headers: admin.headers })
    t.equal(log.json().length, BURST)
    t.match(log.json()[0], { userId: user.id, address: '127.0.0.1' })
  })
}

t.test('18.3 the login of the console tells nothing about a password of somebody who may not open it', async (t) => {
  const [plain, withApp] = [await createUser(), await createUser()]
  await addApp(withApp)
  const unknown = { email: `${randomUUID()}@example.com`, password: WRONG }
  const shown = async (given: { email: string, password: string }) => {
    const { statusCode, headers, body } = await send('/console/login', given)
    return { statusCode, headers: { ...headers, date: '', 'content-length': '' }, body: body.replaceAll(given.email, '') }
  }
  const expected = await shown(unknown)
  t.equal(expected.statusCode, 401)
  for (const user of [plain, withApp]) {
    t.strictSame(await shown({ ...user, password: WRONG }), expected)
    t.strictSame(await shown(user), expected, 'the right one')
  }
})

t.test('18.3 nor about a second factor, which is not used up', async (t) => {
  const user = await createUser()
  const secret = await addApp(user)
  const { email, password } = user
  const challengeOf = async () =>
    (await inject('POST', '/api/auth/login', { payload: { email, password } })).json().challenge as string
  const shown = async (challenge: string, code: string) => {
    const { statusCode, headers, body } = await send('/console/login/second-factor', { challenge, code })
    return { statusCode, headers: { ...headers, date: '' }, body: body.replaceAll(challenge, '') }
  }
  const code = codeAt(secret, 1)
  const challenge = await challengeOf()
  const right = await shown(challenge, code)
  t.match(right.statusCode, 401)
  t.strictSame(await shown(await challengeOf(), code === '000000' ? '000001' : '000000'), right)
  const log = await inject('GET', `/api/audit?user=${user.id}&action=login.second-factor-failed`, { headers: admin.headers })
  t.equal(log.json().length, 2)
  const completed = await inject('POST', '/api/auth/login/second-factor', { payload: { challenge, code } })
  t.equal(completed.statusCode, 200)
})

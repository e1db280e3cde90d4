import { randomUUID } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { createUsher, type LoggedIn } from '../../helpers/app.ts'
import { withConsole } from '../../helpers/console.ts'

const BURST = 3
// Permits no further attempt during a test, however long that takes.
const oneBurst = { burst: BURST, perMinute: 0.01 }
const generous = { burst: 10_000, perMinute: 10_000 }
const WRONG = 'a wrong password'

const usher = await createUsher(t, { throttle: { account: oneBurst, address: generous, secondFactor: generous } })
const { inject, createUser, admin } = usher
const { send } = withConsole(usher)

interface Check {
  /** Sends a wrong password. */
  attempt (user: LoggedIn): Promise<LightMyRequestResponse>
  status: number
  action: string
}

// Every place where a password is checked.
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

for (const [name, { attempt, status, action }] of Object.entries(checks)) {
  t.test(`4 ${name}: each failure is in the account log and counts toward the limit of the account`, async (t) => {
    const user = await createUser()
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

import t from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { createUsher } from '../helpers/app.ts'
import { cookieOf, fieldsOf, withConsole } from '../helpers/console.ts'

const usher = await createUsher(t, { console: true })
const { inject, createUser } = usher
const { read, send } = withConsole(usher)
const STEP_MS = 30_000
const codeAt = (secret: string, steps = 0) => codeOf(secret, Math.floor(Date.now() / STEP_MS) + steps)

t.test('18.3 an admin with an authenticator app logs in to the console with a code or a recovery code, and not without', async (t) => {
  const colleague = await createUser({ role: 'admin' })
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: colleague.headers })).json()
  const confirmed = await inject('POST', '/api/auth/totp/confirm', { headers: colleague.headers, payload: { code: codeAt(secret) } })
  const [recoveryCode] = confirmed.json().recoveryCodes as string[]
  const begin = async () => {
    const response = await send('/console/login?next=%2Fusers', colleague)
    t.equal(response.statusCode, 401)
    t.equal(response.headers['set-cookie'], undefined, 'the password alone opens nothing')
    return fieldsOf(response.body, '/console/login/second-factor\\?next=%2Fusers')['challenge']!
  }
  const complete = (fields: object) => send('/console/login/second-factor?next=%2Fusers', fields)

  const challenge = await begin()
  t.match(challenge, /^[\w-]+$/)
  const none = await complete({ challenge })
  t.equal(none.statusCode, 400)
  t.match(none.body, 'Type a code')
  const wrong = await complete({ challenge, code: '000000' })
  t.ok([401, 403].includes(wrong.statusCode), `${wrong.statusCode}`)
  t.equal(wrong.headers['set-cookie'], undefined)
  t.equal(fieldsOf(wrong.body, '/console/login/second-factor\\?next=%2Fusers')['challenge'], challenge, 'the code can be typed again')
  const right = await complete({ challenge, code: codeAt(secret, 1) })
  t.equal(right.statusCode, 303)
  t.equal(right.headers.location, '/console/users')
  t.equal((await read('/console', cookieOf(right))).statusCode, 200)
  const again = await complete({ challenge, recoveryCode })
  t.equal(again.headers['set-cookie'], undefined, 'a challenge is used once')
  t.match(again.body, 'name="password"', 'the login begins again')

  const second = await complete({ challenge: await begin(), recoveryCode })
  t.equal(second.statusCode, 303)
  for (const challenge of ['', 'x', 'A'.repeat(43), '\u0000']) {
    const response = await complete({ challenge, code: '123456' })
    t.ok([400, 401, 403].includes(response.statusCode), `${response.statusCode}`)
    t.equal(response.headers['set-cookie'], undefined)
  }
})

t.test('18.3 a user with an authenticator app gets no console by it', async (t) => {
  const user = await createUser()
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  await inject('POST', '/api/auth/totp/confirm', { headers: user.headers, payload: { code: codeAt(secret) } })
  const { email, password } = user
  const { challenge } = (await inject('POST', '/api/auth/login', { payload: { email, password } })).json()
  const own = await send('/console/login', user)
  t.equal(own.headers['set-cookie'], undefined)
  t.notMatch(own.body, 'challenge')
  const response = await send('/console/login/second-factor', { challenge, code: codeAt(secret, 1) })
  t.equal(response.statusCode, 401)
  t.equal(response.headers['set-cookie'], undefined)
})

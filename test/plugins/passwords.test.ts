import t from 'tap'
import { createUsher } from '../helpers/app.ts'

t.test('4 a flood of logins: those beyond the bound get 503 with Retry-After, and the rest of the node stays fast', async (t) => {
  const { inject, admin } = await createUsher(t)
  await inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'None', email: 'none@example.com' } })
  // An unknown address, and a user without a password: neither is refused without the work that a wrong password
  // costs, or the bound would not be reached.
  const emails = ['nobody@example.com', 'none@example.com']
  const flood = Promise.all(Array.from({ length: 260 }, (_, index) => inject('POST', '/api/auth/login', { payload: { email: emails[index % 2], password: 'x' } })))
  let slowest = 0
  for (let round = 0; round < 20; round++) {
    const started = performance.now()
    t.equal((await inject('GET', '/api/protected', { headers: admin.headers })).statusCode, 200)
    slowest = Math.max(slowest, performance.now() - started)
  }
  t.ok(slowest < 1000, `${slowest} ms`)
  const responses = await flood
  const refused = responses.filter(({ statusCode }) => statusCode === 503)
  t.ok(refused.length > 0 && refused.length <= 60, `${refused.length} refused`)
  t.same(refused[0]!.json(), { error: 'The server is busy, try again', code: 'OVERLOADED' })
  t.equal(refused[0]!.headers['retry-after'], '1')
  t.ok(responses.every(({ statusCode }) => statusCode === 401 || statusCode === 503))
  t.equal((await inject('POST', '/api/auth/login', { payload: admin })).statusCode, 200, 'and then it goes on')
})

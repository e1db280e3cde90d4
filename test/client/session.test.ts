import t from 'tap'
import { createUsherClient, unwrap, UsherError, type SessionState } from '../../client/index.ts'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { createUsher } from '../helpers/app.ts'
import { createCuttingProxy } from '../helpers/cutting-proxy.ts'
import { createMailer, tokenIn } from '../helpers/mail.ts'

const inbox = createMailer()
const usher = await createUsher(t, { prefix: '/accounts', mailer: inbox.mailer, loginMail: true })
const proxy = await createCuttingProxy(t, await usher.app.listen({ port: 0, host: '127.0.0.1' }))

// Records the requests, and sends a token that is not valid until the next refresh when `isStale` is set.
function createClient () {
  const requests: string[] = []
  const watch = {
    requests,
    isStale: false,
    rejected: 0,
    expected: 0,
    refreshes: () => requests.filter((path) => path.endsWith('/refresh')).length,
  }
  const client = createUsherClient({
    baseUrl: `${proxy.url}/accounts/`,
    retry: { baseMs: 1 },
    fetch: async (request) => {
      const { pathname } = new URL(request.url)
      requests.push(pathname)
      if (pathname.endsWith('/refresh')) {
        // A token that is issued in the same second is the same one, so all calls are rejected before.
        while (watch.rejected < watch.expected) await new Promise(setImmediate)
        watch.isStale = false
      }
      if (watch.isStale) request.headers.set('Authorization', 'Bearer stale')
      const response = await fetch(request)
      if (response.status === 401) watch.rejected++
      return response
    },
  })
  const states: SessionState[] = []
  client.session.subscribe((state) => states.push(state))
  return Object.assign(watch, { client, states })
}

t.test('15.4 typed calls resolve to data or an error, and `unwrap` throws the error', async (t) => {
  const { client, states } = createClient()
  const rejected = await client.get('/api/protected')
  t.strictSame([rejected.response.status, rejected.data, rejected.error], [
    401, undefined, { error: 'A bearer token is required', code: 'UNAUTHENTICATED' },
  ])
  t.strictSame(states.map(({ state, reason }) => [state, reason]), [['none', undefined]], 'nothing is over')

  await t.rejects(client.login({ email: usher.admin.email, password: 'wrong password' }), {
    name: 'UsherError', status: 401, code: 'INVALID_CREDENTIALS',
  })
  const user = await client.login(usher.admin)
  t.equal(user.id, usher.admin.id)
  t.equal((await unwrap(client.get('/api/protected'))).user.id, usher.admin.id)
  t.equal((await unwrap(client.get('/api/users/{id}', { params: { path: { id: user.id } } }))).email, usher.admin.email)
  const error = await unwrap(client.post('/api/users', { body: { name: '', email: 'x' } }))
    .catch((error: unknown) => error as UsherError)
  t.ok(error instanceof UsherError)
  t.match(error, { status: 400, problems: [/^name /, /^email /] })

  await client.logout()
  t.strictSame(
    states.slice(1).map(({ state, user, reason }) => [state, user?.id, reason]),
    [['active', user.id, undefined], ['none', undefined, 'logout']]
  )
  t.equal(await client.session.token(), undefined)
  t.equal((await client.get('/api/protected')).response.status, 401)
})

t.test('15.4 forty calls with a token that is rejected refresh the session once', async (t) => {
  const watch = createClient()
  const { client } = watch
  await client.login(usher.admin)
  Object.assign(watch, { isStale: true, expected: 40 })
  const calls = await Promise.all(Array.from({ length: 40 }, () => client.get('/api/protected')))
  t.strictSame([...new Set(calls.map(({ data }) => data?.user.id))], [usher.admin.id])
  t.equal(watch.refreshes(), 1)
})

t.test('15.4 a lost response to a refresh or a logout is repeated, and the session continues or ends', async (t) => {
  const watch = createClient()
  const { client, states } = watch
  await client.login(usher.admin)
  watch.isStale = true
  proxy.loseResponse(/^POST \S+\/refresh/)
  t.equal((await client.get('/api/protected')).response.status, 200)
  t.equal(watch.refreshes(), 2)
  proxy.loseResponse(/^POST \S+\/logout/)
  await client.logout()
  t.equal(proxy.lost, 2)
  t.strictSame(states.map(({ state, reason }) => [state, reason]), [['active', undefined], ['none', 'logout']])
})

t.test('15.4 a server that cannot be reached does not end the session', async (t) => {
  let isDown = false
  const client = createUsherClient({
    baseUrl: `${proxy.url}/accounts`,
    fetch: (request) => isDown ? Promise.resolve(new Response('', { status: 500 })) : fetch(request),
  })
  const user = await client.login(usher.admin)
  isDown = true
  await t.rejects(client.session.renew(await client.session.token()), UsherError)
  t.strictSame([client.session.current.state, client.session.current.user?.id], ['active', user.id])
  isDown = false
  t.type(await client.session.renew(await client.session.token()), 'string')
})

t.test('15.4 a session that was ended elsewhere is reported by the next call', async (t) => {
  const member = await usher.createUser()
  const { client, states } = createClient()
  await client.login(member)
  await usher.inject('DELETE', `/api/users/${member.id}/sessions`, { headers: usher.admin.headers })
  t.equal((await client.get('/api/protected')).response.status, 401)
  t.strictSame(states.map(({ state, reason }) => [state, reason]), [['active', undefined], ['none', 'expired']])
  await client.login(member)
  t.equal((await client.get('/api/protected')).response.status, 200, 'the user may log in again')
})

t.test('15.4 16.2 16.4 a login with a second factor takes two steps, and a step-up replaces the token', async (t) => {
  const { client, states } = createClient()
  const user = await usher.createUser()
  await client.login(user)
  const { secret } = await unwrap(client.post('/api/auth/totp'))
  const used = Math.floor(Date.now() / 30_000)
  const { recoveryCodes } = await unwrap(
    client.post('/api/auth/totp/confirm', { body: { code: codeOf(secret, used) } })
  )
  await client.logout()

  const demand = await client.login(user).catch((error: unknown) => error as UsherError)
  t.ok(demand instanceof UsherError)
  const { code, challenge, methods } = demand as UsherError
  t.strictSame([code, methods], ['SECOND_FACTOR_REQUIRED', ['totp', 'recovery-code']])
  await t.rejects(client.completeLogin({ challenge: challenge!, code: '000000' }), { code: 'INVALID_SECOND_FACTOR' })
  t.equal((await client.completeLogin({ challenge: challenge!, code: codeOf(secret, used + 1) })).id, user.id)
  t.equal((await unwrap(client.get('/api/protected'))).user.id, user.id)

  const before = await client.session.token()
  await t.rejects(client.stepUp({ password: user.password }), { status: 403, code: 'SECOND_FACTOR_MISSING' })
  t.equal((await client.stepUp({ recoveryCode: recoveryCodes[0]! })).id, user.id)
  t.not(await client.session.token(), before)
  t.equal(states.at(-1)!.state, 'active')
  await t.rejects(client.passkeyOptions(), { status: 409, code: 'PASSKEYS_UNAVAILABLE' })
  await client.logout()
})

t.test('15.4 16.6 a program logs in by the code or the link of a mail, and steps up by a code', async (t) => {
  const { client, states } = createClient()
  const user = await usher.createUser()
  const codeIn = (text: string) => /^\d{4} \d{4}$/m.exec(text)![0]
  await client.requestLoginMail(user.email)
  const [first] = await inbox.of(user.email, 1)
  await t.rejects(client.loginByMail({ code: '0000 0000' }), { status: 401, code: 'INVALID_LOGIN_CODE' })
  const other = createClient()
  await t.rejects(other.client.loginByMail({ code: codeIn(first!.text) }), { code: 'INVALID_LOGIN_CODE' }, 'another program')
  t.equal((await client.loginByMail({ code: codeIn(first!.text) })).id, user.id)
  t.equal(states.at(-1)!.state, 'active')

  const id = await client.requestStepUpMail()
  const sent = (await inbox.of(user.email, 3)).at(-1)!
  t.equal((await client.stepUp({ mail: { id, code: codeIn(sent.text) } })).id, user.id)
  await client.logout()

  await client.requestLoginMail(user.email)
  const mail = (await inbox.of(user.email, 4)).at(-1)!
  t.equal((await other.client.loginByMail({ token: tokenIn(mail) })).id, user.id)
  await other.client.logout()
})

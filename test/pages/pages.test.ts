import { readdirSync } from 'node:fs'
import { Writable } from 'node:stream'
import type { InjectOptions } from 'fastify'
import t from 'tap'
import usher from '../../app.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { markOf } from '../../routes/pages/account/provider-marks.ts'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { openHost } from '../helpers/host.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { until } from '../helpers/until.ts'

const ORIGIN = 'http://localhost:80'
const form = 'application/x-www-form-urlencoded'
const policy = (action = "'self'") =>
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    `form-action ${action}; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'`

const inbox = createMailer()
const evil = '"><script>alert(1)</script>{{title}}\''
const usherOfTest = await createUsher(t, {
  prefix: '/accounts',
  mailer: inbox.mailer,
  signUp: true,
  loginMail: true,
  organizations: true,
  publicUrl: 'https://api.example.com:8443/base',
  origins: ['*', 'https://good.example', 'http://localhost:8080', 'app://good.example'],
  pages: {
    productName: evil, color: '#FE0', language: 'en-GB', texts: { logIn: 'Anmelden', wrongCredentials: `Falsch ${evil}` },
  },
})
const { inject, createUser, admin } = usherOfTest
const all = [
  '/login', '/login/second-factor', '/login/mail', '/login/mail/code', '/login/mail/confirm', '/forgot-password', '/set-password', '/sign-up', '/sign-up/confirm',
  '/verify-email', '/undo', '/join', '/account', '/account/security', '/account/sessions', '/account/keys', '/account/organizations',
  '/account/files', '/account/data',
]

function send (
  path: string, payload: string | Record<string, string>,
  headers: InjectOptions['headers'] = { 'sec-fetch-site': 'same-origin' }
) {
  const body = typeof payload === 'string' ? payload : `${new URLSearchParams(payload)}`
  return inject('POST', path, { headers: { 'content-type': form, ...headers }, payload: body })
}

t.test('15.2 pages have a strict policy, no file of another site, and no text that is markup', async (t) => {
  for (const path of all) {
    const { statusCode, headers, body } = await inject('GET', path)
    t.equal(statusCode, 200, path)
    t.equal(headers['content-type'], 'text/html; charset=utf-8')
    t.equal(headers['content-security-policy'], policy())
    t.equal(headers['referrer-policy'], /login(?!.*confirm)|forgot|sign-up$/.test(path) ? 'same-origin' : 'no-referrer')
    t.equal(headers['cache-control'], /^\/account|second-factor$/.test(path) ? 'no-store' : 'no-cache')
    t.equal(headers['set-cookie'], undefined)
    const name = '&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{title}}&#39;'
    t.match(body, `<header class="page-header"><span class="brand"><span class="monogram" aria-hidden="true">&quot;</span><bdi>${name}</bdi></span></header>`)
    t.notMatch(body.replaceAll(name, ''), /https?:|\/\/|<script>|<style| style=| on\w+=|\{\{|\}\}/, path)
    t.match(body, '<html lang="en-GB" dir="ltr">')
    t.equal((await inject('HEAD', path)).statusCode, 200)
  }
  t.match((await inject('GET', '/login')).body, '<h1 data-title="Anmelden">')
})

t.test('15.2 a link whose # was encoded leads to its page, and no log contains its token', async (t) => {
  const lines: string[] = []
  const stream = new Writable({ write (line, _, done) { lines.push(String(line)); done() } })
  const logging = await createUsher(t, usherOfTest.options, { logger: { stream, level: 'trace' } })
  const token = 'A-z_0'.repeat(9)
  for (const path of ['/set-password', '/sign-up/confirm', '/verify-email', '/undo', '/join']) {
    for (const hash of ['%23', '%2523']) {
      for (const equals of ['=', '%3D']) {
        for (const method of ['GET', 'HEAD'] as const) {
          const { statusCode, headers } = await logging.inject(
            method, `${path}${hash}token${equals}${token}?utm_source=mail`
          )
          t.equal(statusCode, 302)
          t.equal(
            new URL(String(headers.location), `http://x/accounts${path}${hash}`).href,
            `http://x/accounts${path}#token=${token}`
          )
          t.match(headers, { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
        }
      }
    }
    for (const rest of ['', 'token', 'token=', 'token=<script>', 'other=x', '%2F..%2F%2Fevil.example%2F']) {
      const { statusCode, headers } = await logging.inject('GET', `${path}%23${rest}`)
      t.equal(statusCode, 302, rest)
      t.equal(new URL(String(headers.location), `http://x/accounts${path}`).href, `http://x/accounts${path}`, rest)
    }
  }
  for (const path of ['/login%23token=x', '/undox', '/undo%24token=x', '/undo%23/x', '/undo%23token=%0D%0Ax:y']) {
    t.equal((await logging.inject('GET', path)).statusCode, 404, path)
  }
  t.ok(lines.length > 0)
  t.notMatch(lines.join(''), token)
})

t.test('15.2 scripts and styles are files of the own origin, which browsers keep', async (t) => {
  const { body } = await inject('GET', '/sign-up/confirm')
  const [, folder] = /src="\.\.(\/pages\/[\w-]{16}\.en-GB\/)mail-link\.js"/.exec(body)!
  for (const file of [...readdirSync(new URL('../../routes/pages/account/assets', import.meta.url)), 'texts.js', 'functions.js', 'design.css']) {
    const { statusCode, headers, body } = await inject('GET', `${folder}${file}`)
    t.strictSame(
      [statusCode, headers['cache-control'], headers['x-content-type-options']],
      [200, 'public, max-age=31536000, immutable', 'nosniff'],
      file
    )
    t.match(headers['content-type'], /^(text\/(javascript|css); charset=utf-8|image\/svg\+xml)$/)
    t.notMatch(body.replaceAll('{{title}}', ''), /\{\{|localStorage|innerHTML/)
  }
  t.match((await inject('GET', `${folder}design.css`)).body, /--color: #FE0;\s+--on-color: #000000;/)
  t.match((await inject('GET', `${folder}texts.js`)).body, JSON.stringify(`Falsch ${evil}`))
  t.equal((await inject('GET', '/pages/another-release/page.js')).headers['cache-control'], 'no-cache')
  for (const path of [`${folder}other.js`, `${folder}..%2findex.ts`, `${folder}__proto__`, '/pages/x']) {
    t.equal((await inject('GET', path)).statusCode, 404, path)
  }
})

t.test('15.2 they are not in the API reference', async (t) => {
  t.notMatch((await inject('GET', '/docs/json')).body, /"\/(login|account|pages)/)
})

t.test('15.2 the login form works without JavaScript', async (t) => {
  const user = await createUser()
  const response = await send('/login', { email: user.email, password: user.password })
  t.strictSame([response.statusCode, response.headers.location, response.body], [303, 'account', ''])
  t.equal(response.headers['cache-control'], 'no-store')
  t.match(
    response.headers['set-cookie'],
    /^usher_session=.+; Path=\/base\/accounts\/api\/auth; .*HttpOnly; Secure; SameSite=Lax$/
  )
  const [{ name, value }] = response.cookies as [{ name: string, value: string }]
  t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie: `${name}=${value}` } })).statusCode, 200)

  const typed = '<img src=x onerror=alert(1)>'
  const wrong = await send('/login?returnTo=/a', { email: typed, password: 'wrong' })
  t.equal(wrong.statusCode, 401)
  t.equal(wrong.headers['content-security-policy'], policy())
  t.equal(wrong.headers['cache-control'], 'no-store')
  t.match(wrong.body, 'role="alert" class="alert error" id="alert">Falsch &quot;&gt;&lt;script&gt;')
  t.match(wrong.body, 'value="&lt;img src=x onerror=alert(1)&gt;"')
  t.match(wrong.body, 'data-return-to="/a"')
  t.notMatch(wrong.body, typed)
  t.notMatch(wrong.body, 'value="wrong"')
  const log = (await inject('GET', `/api/audit?user=${user.id}`, { headers: admin.headers })).json()
  t.equal(log[0].action, 'login')
})

/** Sets up an authenticator app. Returns the codes that are accepted: the next one, and recovery codes. */
async function enrol ({ headers }: LoggedIn) {
  const { secret } = (await inject('POST', '/api/auth/totp', { headers })).json()
  const step = Math.floor(Date.now() / 30_000)
  const confirmed = await inject('POST', '/api/auth/totp/confirm', { headers, payload: { code: codeOf(secret, step) } })
  return { code: codeOf(secret, step + 1), recoveryCodes: confirmed.json().recoveryCodes as string[] }
}

const challengeIn = (body: string): string => /name="challenge" value="([\w.-]+)"/.exec(body)![1]!

t.test('16.4 without JavaScript, the login asks for the code of the app and keeps returnTo', async (t) => {
  const user = await createUser()
  const { code } = await enrol(user)
  const asked = await send('/login?returnTo=/a', { email: user.email, password: user.password })
  t.equal(asked.statusCode, 401)
  t.equal(asked.headers['set-cookie'], undefined)
  t.equal(asked.headers['cache-control'], 'no-store')
  t.equal(asked.headers['content-security-policy'], policy())
  t.match(asked.body, 'action="./login/second-factor?returnTo=%2Fa"')
  t.match(asked.body, /data-step="first" hidden>[^]*data-step="second">/)
  t.match(asked.body, 'id="alert"></p>', 'nothing has failed')
  const challenge = challengeIn(asked.body)

  const wrong = await send('/login/second-factor?returnTo=/a', { challenge, code: '<b>' })
  t.equal(wrong.statusCode, 401)
  t.match(wrong.body, 'id="code-alert">This code is wrong or was used already.</p>')
  t.match(wrong.body, /<input id="code" [^>]*\sautofocus\s/)
  t.equal(challengeIn(wrong.body), challenge)
  t.notMatch(wrong.body, '<b>')
  t.match(wrong.body, 'action="../login/second-factor?returnTo=%2Fa"')

  const done = await send('/login/second-factor?returnTo=/a', { challenge, code })
  t.strictSame([done.statusCode, done.headers.location, done.body], [303, '/a', ''])
  const [{ name, value }] = done.cookies as [{ name: string, value: string }]
  t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie: `${name}=${value}` } })).statusCode, 200)
})

t.test('16.4 without JavaScript, a recovery code completes a login', async (t) => {
  const user = await createUser()
  const { recoveryCodes: [recoveryCode] } = await enrol(user)
  const logIn = async () => challengeIn((await send('/login', { email: user.email, password: user.password })).body)
  const challenge = await logIn()
  const wrong = await send('/login/second-factor', { challenge, recoveryCode: 'wrong' })
  t.equal(wrong.statusCode, 401)
  t.match(wrong.body, 'id="recovery-alert">This code is wrong or was used already.</p>')
  t.match(wrong.body, '<details id="recovery" open>')
  t.match(wrong.body, /<input id="recovery-code" [^>]*\sautofocus\s/)
  const done = await send('/login/second-factor', { challenge, recoveryCode: recoveryCode!.toUpperCase() })
  t.strictSame([done.statusCode, done.headers.location], [303, '../account'])
  const again = await send('/login/second-factor', { challenge: await logIn(), recoveryCode: recoveryCode! })
  t.equal(again.statusCode, 401, 'once')
})

t.test('16.4 without JavaScript, the login starts again after five wrong codes, and says so', async (t) => {
  const user = await createUser()
  const { code } = await enrol(user)
  const challenge = challengeIn((await send('/login', { email: user.email, password: user.password })).body)
  for (let attempt = 0; attempt < 5; attempt++) {
    t.match((await send('/login/second-factor', { challenge, code: '000000' })).body, 'data-step="first" hidden>')
  }
  const { statusCode, headers, body } = await send('/login/second-factor?returnTo=/a', { challenge, code })
  t.strictSame([statusCode, headers['set-cookie']], [401, undefined])
  t.match(body, 'id="alert">That took too long, or there were too many attempts. Log in again.</p>')
  t.match(body, /data-step="first">[^]*action="\.\.\/login\?returnTo=%2Fa"[^]*data-step="second" hidden>/)
  t.notMatch(body, challenge)
})

t.test('16.4 a form for the second factor with hostile content gets a page with a clear failure', async (t) => {
  const inputs: [string, number, string][] = [
    ['', 400, 'id="alert">The form could not be read. Try again.'],
    ['challenge=&code=1', 400, 'id="alert">The form could not be read.'],
    ['challenge=x', 400, 'id="code-alert">This must not be empty.'],
    ['challenge=x&code=1&recoveryCode=2', 400, 'id="recovery-alert">This must not be empty.'],
    ['challenge=x&code=1', 401, 'id="alert">That took too long'],
    ['challenge=x&challenge=y&code=1', 400, 'id="alert">The form could not be read.'],
    ['challenge=x&code=%00', 400, 'id="code-alert">This contains characters that are not allowed.'],
    [`challenge=${'x'.repeat(101)}&code=1`, 400, 'id="code-alert">The form could not be read.'],
    [`challenge=x&code=${'1'.repeat(65)}`, 400, 'id="code-alert">This may have at most 64 characters.'],
    [`challenge=x&recoveryCode=${'1'.repeat(129)}`, 400, 'id="recovery-alert">This may have at most 128 characters.'],
    [`challenge=${encodeURIComponent('"><script>')}&code=`, 401, 'id="alert">That took too long'],
    [`code=${'x'.repeat(20_000)}`, 413, 'The form could not be read.'],
  ]
  for (const [payload, status, text] of inputs) {
    const { statusCode, body } = await send('/login/second-factor', payload)
    t.equal(statusCode, status, payload.slice(0, 60))
    t.match(body, text)
    t.notMatch(body, '<script>')
  }
  t.equal((await send('/login/second-factor', 'challenge=x&code=1', {})).statusCode, 403, 'of another site')
})

t.test('15.2 the form for a forgotten password works without JavaScript, and says the same for every address', async (t) => {
  const user = await createUser()
  for (const email of [user.email, 'nobody@example.com', 'no address']) {
    const { statusCode, headers, body } = await send('/forgot-password?returnTo=https://good.example', { email })
    t.strictSame(
      [statusCode, headers.location, body], [303, 'forgot-password?sent&returnTo=https%3A%2F%2Fgood.example%2F', '']
    )
  }
  await inbox.of(user.email, 1)
  const { body } = await inject('GET', '/forgot-password?sent')
  t.match(body, 'a link to set a password is on its way')
  t.notMatch(body, '<form')
})

t.test('15.2 the form for sign-up works without JavaScript, and says the same whether the address is free or taken', async (t) => {
  const user = await createUser()
  const given = { name: 'Ada', email: 'free@example.com', password: 'horse battery staple' }
  const cookies: string[] = []
  for (const email of [given.email, user.email]) {
    const { statusCode, headers, body } = await send('/sign-up', { ...given, email })
    t.strictSame([statusCode, headers.location, body], [303, 'sign-up?sent', ''])
    t.match(headers['set-cookie'], /^usher_sign_up=[\w-]{43}; .*Path=\/base\/accounts\/api\/auth; .*HttpOnly/)
    cookies.push(`${headers['set-cookie']}`.split(';')[0]!)
  }
  const refused = await send('/sign-up', { ...given, password: 'password1' })
  t.equal(refused.statusCode, 400)
  t.match(refused.body, 'value="Ada"')
  t.notMatch(refused.body, 'password1')
  const token = await inbox.token(given.email)
  t.strictSame((await inject('POST', '/api/auth/sign-up/check', { payload: { token } })).json(), { email: given.email })
  const headers = { cookie: cookies[0] }
  t.equal((await inject('POST', '/api/auth/sign-up/confirm', { payload: { token }, headers })).statusCode, 201)
  t.equal((await inject('POST', '/api/auth/sign-up/check', { payload: { token } })).statusCode, 400)
})

t.test('15.2 forms are accepted from allowed origins only', async (t) => {
  const credentials = { email: admin.email, password: admin.password }
  const accepted: InjectOptions['headers'][] = [
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'same-origin', origin: 'null' },
    { origin: ORIGIN },
    { origin: 'https://api.example.com:8443' },
    { origin: 'https://good.example', 'sec-fetch-site': 'cross-site' },
  ]
  for (const headers of accepted) {
    t.equal(
      (await send('/login', credentials, { host: 'localhost:80', ...headers })).statusCode, 303, JSON.stringify(headers)
    )
  }
  const rejected: InjectOptions['headers'][] = [
    {},
    { origin: 'null' },
    { origin: 'null', 'sec-fetch-site': 'cross-site' },
    { origin: '' },
    { origin: 'https://evil.example' },
    { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    { origin: 'https://good.example.evil.example' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'cross-site' },
  ]
  for (const path of ['/login', '/forgot-password']) {
    for (const headers of rejected) {
      const { statusCode, headers: { 'set-cookie': cookie }, body } = await send(path, credentials, headers)
      t.strictSame([statusCode, cookie], [403, undefined], `${path} ${JSON.stringify(headers)}`)
      t.match(body, 'This form was sent from another site.')
    }
  }
})

t.test('15.2 a form with hostile content gets a page with a clear failure', async (t) => {
  const own = { 'sec-fetch-site': 'same-origin' }
  const inputs: [string | Buffer, string, number, string][] = [
    ['', form, 400, 'id="email-error">This must not be empty.</p>'],
    ['email=a&email=b&password=x', form, 400, 'id="email-error">The form could not be read.'],
    ['email[]=a&email[$gt]=&password=x', form, 400, 'id="email-error">This must not be empty.'],
    ['__proto__=x&constructor=x&email=a&password=%00', form, 400, 'id="password-error">This contains characters that are not allowed.'],
    ['email=%0d%0aSet-Cookie:x&password=%ff', form, 401, 'Falsch'],
    ['email=a%00b&password=x', form, 400, 'id="email-error">This contains characters that are not allowed.'],
    [Buffer.from([0x65, 0x3d, 0xff]), form, 400, 'id="alert">The form could not be read.'],
    [`email=a&password=${'x'.repeat(1025)}`, form, 400, 'id="password-error">This may have at most 1,024 characters.'],
    [`${'a=b&'.repeat(100)}email=a`, form, 400, 'id="email-error">This must not be empty.'],
    [`email=${'x'.repeat(20_000)}`, form, 413, 'The form could not be read.'],
    ['email=%&password=%zz', form, 401, 'Falsch'],
    ['{"email":"a","password":"b"}', 'application/json', 415, 'The form could not be read.'],
    ['email=a', 'text/plain', 415, 'The form could not be read.'],
    ['--x--', 'multipart/form-data; boundary=x', 415, 'The form could not be read.'],
    ['email=a', 'application/x-www-form-urlencoded-x', 415, 'The form could not be read.'],
  ]
  for (const [payload, type, status, text] of inputs) {
    const { statusCode, headers, body } = await inject(
      'POST', '/login', { headers: { ...own, 'content-type': type }, payload }
    )
    t.equal(statusCode, status, `${type} ${String(payload).slice(0, 60)}`)
    t.equal(headers['content-type'], 'text/html; charset=utf-8')
    t.match(body, text)
  }
  const none = await inject('POST', '/login', { headers: own })
  t.equal(none.statusCode, 400)
  for (const query of [
    '?returnTo=/a&returnTo=/b', '?__proto__=x', '?sent&sent', '?%', '?returnTo=%ff', `?returnTo=/${'x'.repeat(9000)}`,
  ]) {
    for (const path of all) {
      t.equal((await inject('GET', `${path}${query}`)).statusCode, 200, `${path}${query.slice(0, 30)}`)
    }
  }
})

nightly('15.2 a form over a limit of attempts gets 429, as the API does', async (t) => {
  const { inject, admin } = await createUsher(
    t, { throttle: { account: { burst: 1, perMinute: 0.01 } }, pages: { texts: { tooManyWait: 'Slow down.' } } }
  )
  const attempt = () => inject('POST', '/login', {
    headers: { 'content-type': form, 'sec-fetch-site': 'same-origin' }, payload: 'email=ada@example.com&password=x',
  })
  t.equal((await attempt()).statusCode, 401)
  const { statusCode, headers, body } = await attempt()
  t.equal(statusCode, 429)
  t.ok(Number(headers['retry-after']) > 0)
  t.match(body, 'Slow down.')
  const isLogged = async () =>
    (await inject('GET', '/api/audit?action=access.throttled', { headers: admin.headers })).json().length === 1
  await until('an entry of the account log', isLogged)
})

t.test('15.2 returnTo leads to configured origins only', async (t) => {
  const accepted: [given: string, target: string][] = [
    ['/', '/'],
    ['/notes?page=2#top', '/notes?page=2#top'],
    ['/a/../b', '/b'],
    ['/caf\u00e9', '/caf%C3%A9'],
    ['/?next=https://evil.example', '/?next=https://evil.example'],
    ['https://good.example', 'https://good.example/'],
    ['HTTPS://GOOD.example:443/x', 'https://good.example/x'],
    ['https:good.example', 'https://good.example/'],
    ['http://localhost:8080/x', 'http://localhost:8080/x'],
    ['https://api.example.com:8443/account', 'https://api.example.com:8443/account'],
  ]
  for (const [given, target] of accepted) {
    const query = `?${new URLSearchParams({ returnTo: given })}`
    const response = await send(`/login${query}`, { email: admin.email, password: admin.password })
    t.strictSame([response.statusCode, response.headers.location], [303, target], given)
    const page = await inject('GET', `/login${query}`)
    t.match(page.body, `data-return-to="${target.replaceAll('&', '&amp;')}"`)
    t.equal(page.headers['content-security-policy'], policy(
      target.startsWith('/') ? undefined : `'self' ${new URL(target).origin}`
    ))
    t.match(
      (await inject('GET', `/sign-up${query}`)).body,
      `href="login?returnTo=${encodeURIComponent(target).replaceAll('%20', '+')}"`
    )
  }
  const ignored = [
    '', 'account', './x', '?x', '#x', '//evil.example', '///evil.example', '/\\evil.example', '\\\\evil.example',
    '/\t/evil.example', '\t//evil.example',
    '/\n/evil.example', ' /x', '/x ', '/ /evil.example', '/\u00a0', '/\u2028/x', '/\u200b/x', '/\0', '/.//evil.example',
    '/..//evil.example', '/%2e//evil.example', '/x/..//evil.example',
    'javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\nscript:alert(1)', 'data:text/html,x',
    'blob:https://good.example/x', 'file:///etc/passwd', 'about:blank', 'vbscript:x',
    'https://evil.example', 'https://good.example@evil.example', 'https://good.example:x@evil.example',
    'https://user@good.example', 'https://good.example.evil.example',
    'https://evilgood.example', 'https://good.example:444', 'http://good.example', 'http://localhost',
    'http://localhost:8081', 'https://api.example.com', 'https:/\\good.example', 'https://good.example\\@evil.example',
    'https://good.example\t', 'ftp://good.example', 'ws://localhost:8080', 'null', '*', 'https://*', 'https://',
    'https://[', 'https://g\u043e\u043ed.example', `/${'x'.repeat(2048)}`, '\ud800',
  ]
  for (const given of ignored) {
    const query = `?returnTo=${encodeURIComponent(given.toWellFormed())}`
    const page = await inject('GET', `/login${query}`)
    t.match(page.body, 'data-return-to="account"', query)
    t.equal(page.headers['content-security-policy'], policy())
  }
  for (const given of ['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)']) {
    const { headers } = await send(
      `/login?${new URLSearchParams({ returnTo: given })}`, { email: admin.email, password: admin.password }
    )
    t.equal(headers.location, 'account', given)
  }
  t.match((await inject('GET', '/login?returnTo=/a&returnTo=/b')).body, 'data-return-to="account"', 'twice')
})

nightly('15.2 pages can be turned off, and passwordUrl, signUp and loginMail decide about theirs', async (t) => {
  const none = await createUsher(t, { pages: { enabled: false }, signUp: true, mailer: inbox.mailer })
  for (const path of all) {
    t.equal((await none.inject('GET', path)).statusCode, 404, path)
    t.equal((await none.inject('POST', path, { payload: '' })).statusCode, 404, path)
  }
  const some = await createUsher(t, { passwordUrl: 'https://app.example.com/password' })
  const statuses = await Promise.all(all.map(async (path) => [path, (await some.inject('GET', path)).statusCode]))
  t.strictSame(
    statuses.filter(([, status]) => status === 404).map(([path]) => path),
    [
      '/login/mail', '/login/mail/code', '/login/mail/confirm', '/set-password', '/sign-up', '/sign-up/confirm',
      '/join', '/account/organizations',
    ]
  )
  t.notMatch((await some.inject('GET', '/login')).body, 'sign-up')
})

t.test('15.2 in a host, forms add no parser, and a host with pages of its own can turn these off', async (t) => {
  const app = openHost(t)
  app.get('/login', async () => 'of the host')
  app.post('/form', async () => 'read')
  await app.register(usher, { ...usherOfTest.options, prefix: '', pages: { enabled: false } })
  t.equal((await app.inject('/login')).body, 'of the host')
  t.equal(
    (await app.inject({ method: 'POST', url: '/form', headers: { 'content-type': form }, payload: 'a=b' })).statusCode,
    415
  )
})

t.test('15.2 wrong options of pages are rejected', async (t) => {
  const read = (pages: object) => readOptions({ databaseUrl: 'postgres://localhost/usher', pages })
  const bad: [object, string | undefined][] = [
    [{ color: 'red' }, 'usher: pages.color must be a color such as #1d4ed8'],
    [{ color: '#12345' }, 'usher: pages.color must be a color such as #1d4ed8'],
    [{ color: '#fff;}' }, 'usher: pages.color must be a color such as #1d4ed8'],
    [{ productName: ' ' }, 'usher: pages.productName must not be blank'],
    [{ productName: 'a\nb' }, 'usher: pages.productName must not contain control characters'],
    [{ productName: 'x'.repeat(101) }, 'usher: pages.productName must be at most 100 characters'],
    [{ texts: { login: 'x' } }, 'usher: pages.texts.login must be an object'],
    [{ texts: { nl: { login: 'x' } } }, 'usher: pages.texts.nl has no member login'],
    [{ logo: 'https://cdn.example/logo.svg' }, undefined],
    [{ logo: '//cdn.example/logo.svg' }, undefined],
    [{ appUrl: 'javascript:alert(1)' }, undefined],
    [{ termsUrl: '//evil.example' }, undefined],
    [{ texts: { logIn: '' } }, 'usher: pages.texts.logIn must not be blank'],
    [{ texts: { logIn: 1 } }, 'usher: pages.texts.logIn must be a string'],
    [{ enabled: 'no' }, 'usher: pages.enabled must be a boolean'],
    [{ title: 'x' }, 'usher: pages has no member title'],
  ]
  for (const [pages, message] of bad) {
    t.throws(() => read(pages), message === undefined ? /^usher: pages\.\w+ must/ : { message }, JSON.stringify(pages))
  }
  t.strictSame(read({}).pages, { enabled: true, productName: 'Usher', color: '#1d4ed8', texts: {} })
})

// The apps of several tests.
const withForms = { signUp: true, loginMail: true, mailer: inbox.mailer }
const branded = {
  pages: {
    texts: { nl: { logIn: 'Inloggen' }, de: { logIn: 'Einloggen' } },
    productName: 'Notes',
    logo: '/logo.svg',
    appUrl: 'https://app.example.com/',
    termsUrl: '/terms',
    privacyUrl: '/p',
  },
}

t.test('15.2 readers get pages and scripts in their language, and caches tell them apart', async (t) => {
  const { inject } = await sharedUsher(withForms)
  const titles: [string | undefined, string, string, string][] = [
    [undefined, 'en', 'ltr', 'Log in'],
    ['de-CH,de;q=0.9', 'de', 'ltr', 'Anmelden'],
    ['fr', 'fr', 'ltr', 'Se connecter'],
    ['es-MX', 'es', 'ltr', 'Iniciar sesión'],
    ['pt-BR', 'pt', 'ltr', 'Entrar'],
    ['ja', 'ja', 'ltr', 'ログイン'],
    ['zh-CN', 'zh-Hans', 'ltr', '登录'],
    ['ar', 'ar', 'rtl', 'تسجيل الدخول'],
    ['nl', 'en', 'ltr', 'Log in'],
  ]
  for (const [accepted, language, direction, title] of titles) {
    const { body, headers } = await inject('GET', '/login', {
      headers: accepted === undefined ? {} : { 'accept-language': accepted },
    })
    t.match(body, `<html lang="${language}" dir="${direction}">`)
    t.match(body, `<title>${title} · Usher</title>`)
    t.match(headers, { 'content-language': language, vary: /Accept-Language/ })
    const [folder] = /pages\/[\w-]{16}\.[\w-]+\//.exec(body)!
    t.match((await inject('GET', `/${folder}texts.js`)).headers['cache-control'], 'immutable')
  }
  const wrong = await inject('POST', '/login', {
    headers: { 'accept-language': 'de', 'content-type': form, 'sec-fetch-site': 'same-origin' },
    payload: 'email=ada@example.com&password=x',
  })
  t.match(wrong.body, 'Die E-Mail-Adresse oder das Passwort ist falsch.')
  t.match(wrong.headers.vary, 'Accept-Language')
})

nightly('15.2 a host adds a language, and changes texts of one', async (t) => {
  const { inject } = await sharedUsher(branded)
  const page = async (language: string) => (await inject('GET', '/login', { headers: { 'accept-language': language } })).body
  t.match(await page('nl-BE'), '<title>Inloggen · Notes</title>')
  t.match(await page('nl'), 'E-mail address', 'what it lacks is English')
  t.match(await page('de'), '<title>Einloggen · Notes</title>')
  t.match(await page('de'), 'E-Mail-Adresse')
  t.match(await page('fr'), '<h1 data-title="Se connecter">Se connecter à Notes</h1>')
  await t.rejects(
    createUsher(t, { pages: { texts: { 'no language!': { logIn: 'x' } } } }), /pages.texts has no member no language!/
  )
})

t.test('15.2 a page has the logo, the way back to the app, the terms and the privacy policy of the options', async (t) => {
  const { inject } = await sharedUsher(branded)
  const { body } = await inject('GET', '/login')
  t.match(body, '<img src="/logo.svg" alt="Notes">')
  t.match(body, '<a class="end" href="https://app.example.com/">Back to Notes</a>')
  t.match(body, '<a href="/terms">Terms</a><a href="/p">Privacy</a>')
})

t.test('15.2 returnTo survives a mail: its link comes back to where the user wanted to go, in the same browser', async (t) => {
  const cookieOf = (response: Awaited<ReturnType<typeof inject>>) => `${response.headers['set-cookie']}`.split(';')[0]!
  for (const [asked, opened] of [
    ['/sign-up', '/sign-up/confirm'], ['/forgot-password', '/set-password'], ['/login/mail', '/login/mail/confirm'],
  ] as const) {
    const response = await inject('GET', `${asked}?returnTo=https://good.example/notes`)
    t.match(response.headers['set-cookie'], /^usher_return=[\w-]+; .*Path=\/base\/accounts\/; .*HttpOnly; Secure; SameSite=Lax$/)
    const { body } = await inject('GET', opened, { headers: { cookie: cookieOf(response) } })
    t.match(body, 'returnTo=https%3A%2F%2Fgood.example%2Fnotes', opened)
    t.notMatch((await inject('GET', opened)).body, 'good.example', 'another browser does not know it')
    const again = await inject('GET', asked, { headers: { cookie: cookieOf(response) } })
    t.match(again.headers['set-cookie'], /^usher_return=; .*Max-Age=0/, 'it is forgotten')
  }
  for (const evil of ['https://evil.example', '//evil.example', 'javascript:alert(1)', '/\\evil.example']) {
    const cookie = `usher_return=${Buffer.from(evil).toString('base64url')}`
    t.notMatch((await inject('GET', '/sign-up/confirm', { headers: { cookie } })).body, 'returnTo=', evil)
    t.equal((await inject('GET', `/sign-up?returnTo=${encodeURIComponent(evil)}`)).headers['set-cookie'], undefined)
  }
  for (const cookie of ['usher_return=%ff', 'usher_return=L2E; usher_return=L2I', `usher_return=${'A'.repeat(8000)}`]) {
    const { statusCode, body } = await inject('GET', '/sign-up/confirm', { headers: { cookie } })
    t.equal(statusCode, 200)
    t.notMatch(body, 'returnTo=', cookie.slice(0, 40))
  }
})

t.test('15.2 without JavaScript, an error stands at its field, which gets the focus', async (t) => {
  const { body } = await send('/sign-up', { name: 'Ada', email: 'free@example.com', password: 'password1' })
  t.match(body, 'id="password-error">This password is too common.</p>')
  t.match(body, /<input type="password" [^>]*autofocus aria-invalid="true" aria-describedby="rules password-error">/)
  t.match(body, 'id="alert"></p>')
  t.equal(body.match(/autofocus/g)?.length, 1)
})

nightly('15.2 every input that a form can reject is rejected in the language of the reader', async (t) => {
  const { inject } = await sharedUsher(withForms)
  const forms: Record<string, string[]> = {
    '/login': ['email', 'password'],
    '/login/second-factor': ['challenge', 'code'],
    '/login/mail': ['email'],
    '/login/mail/code': ['loginId', 'code'],
    '/forgot-password': ['email'],
    '/sign-up': ['name', 'email', 'password'],
  }
  const given = { name: 'Ada', email: 'ada@example.com', password: 'quiet lantern river', challenge: 'x', code: '1', loginId: 'x' }
  const hostile = ['', ' ', 'a\0b', 'x'.repeat(2000), 'password1', '\u200b', 'no address', given.email]
  for (const [path, names] of Object.entries(forms)) {
    for (const name of names) {
      for (const value of [undefined, ...hostile]) {
        const fields = new URLSearchParams(names.map((name) => [name, given[name as keyof typeof given]]))
        if (value === undefined) fields.delete(name)
        else fields.set(name, value)
        for (const payload of [`${fields}`, `${fields}&${name}=again`]) {
          const { statusCode, body } = await inject('POST', path, {
            payload, headers: { 'content-type': form, 'sec-fetch-site': 'same-origin', 'accept-language': 'ar' },
          })
          const shown = [...body.matchAll(/(?:alert error|field-error)"[^>]*>([^<]+)</g)].map(([, text]) => text)
          t.ok(statusCode < 500 && (statusCode < 400 || shown.length > 0), `${path} ${payload.slice(0, 80)}`)
          t.notMatch(shown.join(' ').replaceAll(/&#?\w+;/g, ''), /[A-Za-z]{3}/, `${path} ${payload.slice(0, 80)}`)
        }
      }
    }
  }
})

t.test('15.2 a page says the reason of a hook that has rejected something, in the words of the host', async (t) => {
  const reason = 'Only people with an invitation may sign up!'
  const { inject } = await createUsher(t, {
    mailer: createMailer().mailer,
    signUp: true,
    hooks: {
      beforeUserCreate: ({ email }) => {
        if (email === 'ada@example.com') throw Object.assign(new Error(reason), { statusCode: 403 })
      },
    },
  })
  const send = (path: string, payload: Record<string, string>) => inject('POST', path, {
    payload: `${new URLSearchParams(payload)}`, headers: { 'content-type': form, 'sec-fetch-site': 'same-origin' },
  })
  const signUp = await send('/sign-up', { name: 'Ada', email: 'ada@example.com', password: 'violet engine notes' })
  t.equal(signUp.statusCode, 403)
  t.match(signUp.body, `id="alert">${reason}</p>`)
  t.notMatch(signUp.body, 'The login was not accepted.')
})

t.test('15.2 no field cuts off in silence what is typed, since browsers count otherwise than the schemas', async (t) => {
  for (const path of all) t.notMatch((await inject('GET', path)).body, /maxlength/i, path)
})

t.test('15.2 pages that need scripts say so if these do not run', async (t) => {
  for (const path of ['/account', '/account/security', '/set-password', '/sign-up/confirm', '/verify-email', '/undo', '/login/mail/confirm']) {
    t.match((await inject('GET', path)).body, /id="scripts-missing">The scripts of this page have not loaded\./, path)
  }
})

t.test('15.2 each page of an account marks itself in the navigation, whose links work below a prefix', async (t) => {
  const pages = all.filter((path) => path.startsWith('/account'))
  for (const path of pages) {
    const { body } = await inject('GET', path)
    const links = [...body.matchAll(/<li><a href="([^"]+)"( aria-current="page")?>/g)]
      .map(([, href, current]) => [new URL(href!, `http://x/accounts${path}`).pathname, current !== undefined])
    t.strictSame(links, pages.map((other) => [`/accounts${other}`, other === path]), path)
    t.equal(body.match(/<h1/g)?.length, 1)
  }
})

t.test('12.2 the form for sign-up takes fields of the host without JavaScript, and says at each what is wrong', async (t) => {
  const owner = { 'x-read': 'owner', 'x-write': 'owner' }
  const userFields = {
    type: 'object' as const,
    properties: {
      rows: { type: 'integer', minimum: 5, maximum: 50, title: 'Rows <b>', ...owner },
      newsletter: { type: 'boolean', ...owner },
      homeTown: { type: 'string', maxLength: 80, description: 'Where you live', ...owner },
      look: { type: 'string', enum: ['dark-mode', 'EUR'], ...owner },
      tags: { type: 'array', items: { type: 'string' }, ...owner },
      rank: { type: 'integer', 'x-write': 'admin' },
    },
  }
  const { inject } = await createUsher(t, { mailer: inbox.mailer, signUp: true, userFields })
  const { body } = await inject('GET', '/sign-up')
  t.match(body, '<details class="fold"><summary>More (optional)</summary>', 'they are folded')
  t.match(body, '<label for="rows">Rows &lt;b&gt;</label>')
  t.match(body, /<input id="rows"[^>]* step="1" min="5" max="50"[^>]* type="number"/)
  t.match(body, '<label for="homeTown">Home town</label>')
  t.match(body, 'id="homeTown-hint">Where you live</p>')
  t.match(body, '<option value="dark-mode">Dark mode</option><option value="EUR">EUR</option>')
  t.notMatch(body, /name="(tags|rank)"/)
  const send = (fields: Record<string, string>) => inject('POST', '/sign-up', {
    headers: { 'content-type': form, 'sec-fetch-site': 'same-origin' },
    payload: `${new URLSearchParams({ name: 'Ada', email: 'fields@example.com', password: 'quiet lantern river', ...fields })}`,
  })
  const wrong = await send({ rows: '51', newsletter: 'on', homeTown: '<Rome>', look: 'EUR' })
  t.equal(wrong.statusCode, 400)
  t.match(wrong.body, 'id="rows-error">Must be between 5 and 50.</p>')
  t.match(wrong.body, '<details class="fold" open>', 'what is wrong is not')
  t.match(wrong.body, /id="homeTown"[^>]* value="&lt;Rome&gt;"/)
  t.match(wrong.body, /id="newsletter" name="newsletter" checked/)
  t.match(wrong.body, '<option value="EUR" selected>')
  t.match((await send({ rows: 'many' })).body, /id="rows-error">Must be/)
  const sent = await send({ rows: '20', newsletter: 'on', homeTown: '', look: 'dark-mode', tags: 'x', rank: '1' })
  t.equal(sent.statusCode, 400, 'what no form has is the schema\'s to reject')
  const signUp = await send({ rows: '20', newsletter: 'on', homeTown: '', look: 'dark-mode', rank: '1' })
  t.equal(signUp.statusCode, 303)
  const cookie = `${signUp.headers['set-cookie']}`.split(';')[0]!
  const payload = { token: await inbox.token('fields@example.com') }
  const created = await inject('POST', '/api/auth/sign-up/confirm', { payload, headers: { cookie } })
  t.match(created.json(), { rows: 20, newsletter: true, look: 'dark-mode', homeTown: undefined, rank: undefined })
})

t.test('16.5 a provider has the mark of its preset or of its id, and any other a general one', async (t) => {
  const id = (name: string) => /<path [^>]*d="([^"]+)"/.exec(`${markOf(name)}`)![1]
  t.not(id('github'), id('google'))
  t.equal(id('google-workspace'), id('google'))
  t.equal(`${markOf('staff', 'microsoft')}`, `${markOf('microsoft')}`)
  for (const name of ['company', 'constructor', 'toString', 'generic']) t.equal(id(name), id('generic'), name)
})

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { buildSchema } from 'graphql'
import type { LightMyRequestResponse } from 'fastify'
import { SignJWT, importPKCS8 } from 'jose'
import t from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { createKey, createService } from '../helpers/api-keys.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { createPost } from '../helpers/graphql.ts'
import { Authenticator } from '../helpers/authenticator.ts'
import { sample } from '../helpers/nightly.ts'
import { withPasskeys } from '../helpers/passkeys.ts'
import { startProvider } from '../helpers/provider.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'

// This test checks every cell of the table in docs/policy.md, which says what each actor may do.
const policy = readFileSync(new URL('../../docs/policy.md', import.meta.url), 'utf8')
const FORM = 'application/x-www-form-urlencoded'
const columns = ['nobody', 'a user, what is theirs', "a user, another's", 'an admin'] as const
const [, section = ''] = /^## Who may do what$([^]*?)^## /m.exec(policy)!
const rowsOf = (section: string) => section.split('\n').filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim().replaceAll('`', '')))
const table = rowsOf(section)
const [, keySection = ''] = /^## API keys$([^]*?)^## /m.exec(policy)!

const mails = new Map<string, string>()
const origin = 'http://localhost'
const fake = await startProvider(t)
const usher = await createUsher(t, {
  mailer: ({ to, text }) => { mails.set(to, text) },
  signUp: true,
  loginMail: true,
  organizations: true,
  unfinishedUploadsPerUser: 1000,
  unfinishedUploadsPerNetwork: 1000,
  publicUrl: origin,
  providers: { fake: fake.options },
})
const { app, inject, admin } = usher
const [user, another] = [await usher.createUser(), await usher.createUser()]
const sql = openSql(t, usher)

interface Case {
  /** Who asks. */
  actor: LoggedIn | undefined
  /** Whose it is. */
  owner: LoggedIn
}

type Send = (headers: Record<string, string>, of: Case) => Promise<LightMyRequestResponse>

const rest = (method: 'GET' | 'POST' | 'PUT' | 'PATCH' |
  'DELETE', path: string | ((of: Case) => string | Promise<string>), payload?: (of: Case) => object): Send =>
  async (headers, of) => inject(
    method, typeof path === 'string' ? path : await path(of), { headers, ...payload && { payload: payload(of) } }
  )

const graphql = (query: string | ((of: Case) => string | Promise<string>)): Send =>
  async (headers, of) =>
    inject('POST', '/graphql', { headers, payload: { query: typeof query === 'string' ? query : await query(of) } })

const person = () => ({ name: 'Somebody', email: `${randomUUID()}@example.com` })
const addPerson = async (): Promise<{ id: string }> =>
  (await inject('POST', '/api/users', { headers: admin.headers, payload: person() })).json()
const sessionOf = async (of: Case) =>
  JSON.parse(Buffer.from((await usher.login(of.owner)).token.split('.')[1]!, 'base64url').toString()).sid as string
const sendUpload = (headers: object) => post(usher, [filePart('Text'), fieldPart('description', 'Words')], { headers })
const upload = await sendUpload(admin.headers)
// The actions of the API keys with which requests are sent in place of tokens.
let granted: readonly string[] | undefined
/** Returns the user with the headers of a key, if requests are sent with keys. */
const keyed = async (somebody: LoggedIn): Promise<LoggedIn> =>
  granted ? { ...somebody, headers: (await createKey(usher, somebody, { actions: granted })).headers } : somebody
const draftOf = async ({ headers }: LoggedIn): Promise<string> =>
  (await inject('POST', '/api/posts', { headers, payload: { title: 'A', content: '', publishedAt: null } })).json().id

const uploadOf = async ({ headers }: LoggedIn, visibility = 'public') => {
  const parts = [filePart('Text'), fieldPart('description', 'Words'), fieldPart('visibility', visibility)]
  return (await post(usher, parts, { headers })).json().id as string
}
const TUS = { 'tus-resumable': '1.0.0', 'upload-length': '1', 'upload-offset': '0' }
const beginUpload = async ({ owner }: Case) => String((await inject('POST', '/api/uploads/resumable', {
  headers: { ...owner.headers, ...TUS },
})).headers.location)
const tus = (
  method: 'OPTIONS' | 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string | typeof beginUpload = '/api/uploads/resumable'
): Send => async (headers, of) => inject(method, typeof path === 'string' ? path : await path(of), {
  headers: { ...headers, ...TUS, ...method === 'PATCH' && { 'content-type': 'application/offset+octet-stream' } },
  ...method === 'PATCH' && { payload: 'x' },
})
/** Creates a user with the role of the actor, for requests that end sessions or change the password of the user. */
const standIn = (actor: LoggedIn | undefined) => actor && usher.createUser({ role: actor === admin ? 'admin' : 'user' })

/** Returns the headers of such a user who has set up an authenticator app. */
async function withApp (actor: LoggedIn | undefined): Promise<{ authorization: string } | undefined> {
  const somebody = await standIn(actor)
  if (!somebody) return undefined
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: somebody.headers })).json()
  const payload = { code: codeOf(secret, Math.floor(Date.now() / 30_000)) }
  const { token } = (await inject('POST', '/api/auth/totp/confirm', { headers: somebody.headers, payload })).json()
  const headers = { authorization: `Bearer ${token}` }
  return (await keyed({ ...somebody, headers })).headers
}

/** Returns the headers of such a user, with a token or a key, or those that were given. */
async function headersFor (
  actor: LoggedIn | undefined, given: Record<string, string>
): Promise<Record<string, string>> {
  const somebody = await standIn(actor)
  return somebody ? { ...(await keyed(somebody)).headers } : given
}

async function tokenTo (email: string): Promise<string> {
  await until('the mail', () => mails.has(email))
  return /token=([\w-]+)/.exec(mails.get(email)!)![1]!
}

/** Sends the token of a mail, which suffices. */
const useToken = (operation: 'check' | 'confirm'): Send => async (headers) => {
  const { email } = await usher.createUser()
  await inject('POST', '/api/auth/password-reset', { payload: { email } })
  return inject('POST', `/api/auth/password-reset/${operation}`, {
    headers, payload: { token: await tokenTo(email), password: `new ${randomUUID()}` },
  })
}

const useSignUp = (operation: string): Send => async (headers) => {
  const payload = { ...person(), password: randomUUID() }
  await inject('POST', '/api/auth/sign-up', { payload })
  const password = operation === 'sign-up/confirm' ? { password: randomUUID() } : {}
  const token = await tokenTo(payload.email)
  return inject('POST', `/api/auth/${operation}`, { headers, payload: { token, ...password } })
}

const useLoginMail = (operation: string): Send => async (headers) => {
  const { email } = await usher.createUser()
  await inject('POST', '/api/auth/login/mail', { payload: { email } })
  return inject('POST', `/api/auth/${operation}`, { headers, payload: { token: await tokenTo(email) } })
}

const useVerification = (operation: string): Send => async (headers) => {
  const { id, email } = await usher.createUser()
  await inject('POST', `/api/users/${id}/email-verification`, { headers: admin.headers })
  const payload = { token: await tokenTo(email), password: `new ${randomUUID()}` }
  return inject('POST', `/api/auth/${operation}`, { headers, payload })
}

const useUndo = (operation: string): Send => async (headers) => {
  const { id, email, headers: own } = await usher.createUser()
  await inject('PATCH', `/api/users/${id}`, { headers: own, payload: { email: person().email } })
  return inject('POST', `/api/auth/${operation}`, { headers, payload: { token: await tokenTo(email) } })
}

const passkeys = withPasskeys(usher)
async function passkeyOf (owner: LoggedIn): Promise<string> {
  // A user may have 20.
  await sql`delete from passkeys where user_id = ${owner.id}`
  return (await passkeys.register(owner, { origin })).id
}
async function failedDelivery (): Promise<string> {
  const id = randomUUID()
  await sql`insert into failed_deliveries (id, consumer, type, subject, data, created_at, attempts, error)
    values (${id}, 'handler of the test', 'user.created', ${id}, '{}', now(), 1, 'It did not answer')`
  return id
}
async function keyOf (owner: LoggedIn): Promise<string> {
  // A user may have 50.
  await sql`delete from api_keys where user_id = ${owner.id} and name = 'Of the user'`
  return (await createKey(usher, owner, { name: 'Of the user' })).id
}
const created = async (owner: LoggedIn) => new Authenticator({ origin }).create(await passkeys.creationOptions(owner))

async function identityOf (owner: LoggedIn): Promise<string> {
  const id = randomUUID()
  await sql`insert into identities (id, user_id, provider, issuer, subject)
    values (${id}, ${owner.id}, 'fake', ${fake.issuer}, ${id})`
  return id
}

// The request of each row.
const rows: Record<string, Send> = {
  'GET /api/users': rest('GET', '/api/users'),
  'GET /api/users?disabled=true': rest('GET', '/api/users?disabled=true'),
  'GET /api/users/{id}': rest('GET', ({ owner }) => `/api/users/${owner.id}`),
  'POST /api/users': rest('POST', '/api/users', person),
  'POST /api/users, a role': rest('POST', '/api/users', () => ({ ...person(), role: 'admin' })),
  'PUT /api/users/{id}': rest(
    'PUT', ({ owner }) => `/api/users/${owner.id}`, ({ owner }) => ({ name: 'Another', email: owner.email })
  ),
  'PUT /api/users/{id}, another role': rest(
    'PUT',
    async ({ actor, owner }) => `/api/users/${actor === admin ? (await addPerson()).id : owner.id}`,
    () => ({ ...person(), role: 'admin' })
  ),
  'PATCH /api/users/{id}': rest('PATCH', ({ owner }) => `/api/users/${owner.id}`, () => ({ name: 'Another' })),
  'PATCH /api/users/{id}, another role': rest(
    'PATCH',
    async ({ actor, owner }) => `/api/users/${actor === admin ? (await addPerson()).id : owner.id}`,
    () => ({ role: 'admin' })
  ),
  'PATCH /api/users/{id}, disabled': rest(
    'PATCH',
    async ({ actor, owner }) => `/api/users/${actor === admin ? (await addPerson()).id : owner.id}`,
    () => ({ disabled: true })
  ),
  'DELETE /api/users/{id}': async (headers, of) => {
    const mine = of.actor?.id === of.owner.id
    if (!mine) return inject('DELETE', `/api/users/${(await addPerson()).id}`, { headers })
    const gone = await usher.createUser()
    return inject('DELETE', `/api/users/${gone.id}`, { headers: gone.headers })
  },
  'GET /api/users/{id}/export': rest('GET', ({ owner }) => `/api/users/${owner.id}/export`),
  'POST /api/users/{id}/invitation': rest('POST', async () => `/api/users/${(await addPerson()).id}/invitation`),
  'GET /api/users/{id}/sessions': rest('GET', ({ owner }) => `/api/users/${owner.id}/sessions`),
  'DELETE /api/users/{id}/sessions': async (headers, { actor, owner }) => {
    const mine = actor && actor.id === owner.id ? await standIn(actor) : undefined
    return inject(
      'DELETE', `/api/users/${mine?.id ?? (await addPerson()).id}/sessions`, { headers: mine?.headers ?? headers }
    )
  },
  'DELETE /api/users/{id}/sessions/{sessionId}': rest(
    'DELETE', async (of) => `/api/users/${of.owner.id}/sessions/${await sessionOf(of)}`
  ),
  'POST /api/users/{id}/email-verification': async (headers, of) => {
    await sql`update users set email_verified = false where id = ${of.owner.id}`
    return inject('POST', `/api/users/${of.owner.id}/email-verification`, { headers })
  },
  'POST /api/auth/login': rest('POST', '/api/auth/login', ({ owner: { email, password } }) => ({ email, password })),
  'POST /api/auth/refresh': async (headers, { owner }) =>
    inject('POST', '/api/auth/refresh', { headers: { ...headers, cookie: (await usher.login(owner)).cookie } }),
  'POST /api/auth/token': rest('POST', '/api/auth/token', () => ({})),
  'POST /api/auth/logout': async (headers, { actor }) =>
    inject('POST', '/api/auth/logout', { headers: await headersFor(actor, headers) }),
  'GET /api/auth/sessions': rest('GET', '/api/auth/sessions'),
  'DELETE /api/auth/sessions': async (headers, { actor }) =>
    inject('DELETE', '/api/auth/sessions', { headers: await headersFor(actor, headers) }),
  'DELETE /api/auth/sessions/{id}': rest('DELETE', async (of) => `/api/auth/sessions/${await sessionOf(of)}`),
  'PUT /api/auth/password': async (headers, { actor }) => {
    const somebody = await standIn(actor)
    return inject('PUT', '/api/auth/password', {
      headers: somebody ? (await keyed(somebody)).headers : headers,
      payload: { currentPassword: somebody?.password ?? 'x', password: `new ${randomUUID()}` },
    })
  },
  'POST /api/auth/login/second-factor': async () => {
    const somebody = (await standIn(admin))!
    const { secret } = (await inject('POST', '/api/auth/totp', { headers: somebody.headers })).json()
    const at = Math.floor(Date.now() / 30_000)
    const confirmed = await inject(
      'POST', '/api/auth/totp/confirm', { headers: somebody.headers, payload: { code: codeOf(secret, at) } }
    )
    const { challenge } = (await inject(
      'POST', '/api/auth/login', { payload: { email: somebody.email, password: somebody.password } }
    )).json()
    const [recoveryCode] = confirmed.json().recoveryCodes
    return inject('POST', '/api/auth/login/second-factor', { payload: { challenge, recoveryCode } })
  },
  'POST /api/auth/step-up': async (headers, { actor }) => {
    const somebody = await standIn(actor)
    return inject('POST', '/api/auth/step-up', {
      headers: somebody ? (await keyed(somebody)).headers : headers, payload: { password: somebody?.password ?? 'x' },
    })
  },
  'GET /api/auth/second-factor': rest('GET', '/api/auth/second-factor'),
  'POST /api/auth/totp': async (headers, { actor }) =>
    inject('POST', '/api/auth/totp', { headers: await headersFor(actor, headers) }),
  'POST /api/auth/totp/confirm': async (headers, { actor }) => {
    const somebody = await standIn(actor)
    const { secret = 'A' } = somebody
      ? (await inject('POST', '/api/auth/totp', { headers: somebody.headers })).json()
      : {}
    const payload = { code: codeOf(secret, Math.floor(Date.now() / 30_000)) }
    const own = somebody ? (await keyed(somebody)).headers : headers
    return inject('POST', '/api/auth/totp/confirm', { headers: own, payload })
  },
  'DELETE /api/auth/totp': async (headers, { actor }) =>
    inject('DELETE', '/api/auth/totp', { headers: await withApp(actor) ?? headers }),
  'POST /api/auth/recovery-codes': async (headers, { actor }) =>
    inject('POST', '/api/auth/recovery-codes', { headers: await withApp(actor) ?? headers }),
  'POST /api/auth/passkeys/options': rest('POST', '/api/auth/passkeys/options'),
  'POST /api/auth/passkeys': async (headers, { actor }) =>
    passkeys.add({ headers: headers as LoggedIn['headers'] }, actor ? await created(actor) : {}),
  'GET /api/auth/passkeys': rest('GET', '/api/auth/passkeys'),
  'PATCH /api/auth/passkeys/{id}': rest(
    'PATCH', async ({ owner }) => `/api/auth/passkeys/${await passkeyOf(owner)}`, () => ({ name: 'Phone' })
  ),
  'DELETE /api/auth/passkeys/{id}': rest('DELETE', async ({ owner }) => `/api/auth/passkeys/${await passkeyOf(owner)}`),
  'GET /api/users/{id}/passkeys': rest('GET', ({ owner }) => `/api/users/${owner.id}/passkeys`),
  'DELETE /api/users/{id}/passkeys/{passkeyId}': async (headers, { actor, owner }) => {
    // If an admin removes it, all sessions of the user end.
    const of = actor === admin ? await usher.createUser() : owner
    return inject('DELETE', `/api/users/${of.id}/passkeys/${await passkeyOf(of)}`, { headers })
  },
  'POST /api/auth/keys': rest('POST', '/api/auth/keys', () => ({ name: 'Another' })),
  'GET /api/auth/keys': rest('GET', '/api/auth/keys'),
  'GET /api/auth/keys/{id}': rest('GET', async ({ owner }) => `/api/auth/keys/${await keyOf(owner)}`),
  'DELETE /api/auth/keys/{id}': rest('DELETE', async ({ owner }) => `/api/auth/keys/${await keyOf(owner)}`),
  'POST /api/users/{id}/keys': rest(
    'POST', async () => `/api/users/${await createService(usher, person())}/keys`, () => ({ name: 'Another' })
  ),
  'GET /api/users/{id}/keys': rest('GET', ({ owner }) => `/api/users/${owner.id}/keys`),
  'GET /api/users/{id}/keys/{keyId}': rest(
    'GET', async ({ owner }) => `/api/users/${owner.id}/keys/${await keyOf(owner)}`
  ),
  'DELETE /api/users/{id}/keys/{keyId}': rest(
    'DELETE', async ({ owner }) => `/api/users/${owner.id}/keys/${await keyOf(owner)}`
  ),
  'POST /api/auth/login/passkey/options': rest('POST', '/api/auth/login/passkey/options'),
  'POST /api/auth/login/passkey': async (_, { owner }) =>
    passkeys.logIn((await passkeys.register(owner, { origin })).authenticator),
  'POST /api/auth/step-up/options': rest('POST', '/api/auth/step-up/options'),
  'POST /api/auth/login/mail': rest('POST', '/api/auth/login/mail', ({ owner }) => ({ email: owner.email })),
  'POST /api/auth/login/mail/check': useLoginMail('login/mail/check'),
  'POST /api/auth/login/mail/confirm': useLoginMail('login/mail/confirm'),
  'POST /api/auth/step-up/mail': async (headers, { actor }) => {
    if (actor) await sql`update users set email_verified = true where id = ${actor.id}`
    return inject('POST', '/api/auth/step-up/mail', { headers })
  },
  'GET /api/auth/providers': rest('GET', '/api/auth/providers'),
  'GET /api/auth/settings': rest('GET', '/api/auth/settings'),
  'GET /api/auth/providers/{id}/start': rest('GET', '/api/auth/providers/fake/start'),
  'GET /api/auth/providers/{id}/callback': rest('GET', '/api/auth/providers/fake/callback?error=access_denied'),
  'POST /api/auth/providers/{id}/callback': async (headers) => inject('POST', '/api/auth/providers/fake/callback', {
    headers: { ...headers, 'content-type': FORM }, payload: 'error=access_denied',
  }),
  'POST /api/auth/providers/{id}/logout': async (headers) => {
    const token = await fake.sign({
      iss: fake.issuer,
      aud: 'usher',
      iat: Math.floor(Date.now() / 1000),
      jti: randomUUID(),
      sub: 'nobody',
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    })
    return inject('POST', '/api/auth/providers/fake/logout', {
      headers: { ...headers, 'content-type': FORM }, payload: `logout_token=${token}`,
    })
  },
  'POST /api/auth/providers/{id}/link': rest('POST', '/api/auth/providers/fake/link'),
  'POST /api/auth/providers/{id}/step-up': rest('POST', '/api/auth/providers/fake/step-up'),
  'GET /api/auth/identities': rest('GET', '/api/auth/identities'),
  'DELETE /api/auth/identities/{id}': rest(
    'DELETE', async ({ owner }) => `/api/auth/identities/${await identityOf(owner)}`
  ),
  'GET /api/users/{id}/identities': rest('GET', ({ owner }) => `/api/users/${owner.id}/identities`),
  'DELETE /api/users/{id}/identities/{identityId}': async (headers, { actor, owner }) => {
    // If an admin removes it, all sessions of the user end.
    const of = actor === admin ? await usher.createUser() : owner
    return inject('DELETE', `/api/users/${of.id}/identities/${await identityOf(of)}`, { headers })
  },
  'POST /api/auth/password-reset': rest('POST', '/api/auth/password-reset', ({ owner: { email } }) => ({ email })),
  'POST /api/auth/password-reset/check': useToken('check'),
  'POST /api/auth/password-reset/confirm': useToken('confirm'),
  'POST /api/auth/sign-up': rest('POST', '/api/auth/sign-up', () => ({ ...person(), password: randomUUID() })),
  'POST /api/auth/sign-up/check': useSignUp('sign-up/check'),
  'POST /api/auth/sign-up/confirm': useSignUp('sign-up/confirm'),
  'POST /api/auth/email-verification/check': useVerification('email-verification/check'),
  'POST /api/auth/email-verification/confirm': useVerification('email-verification/confirm'),
  'POST /api/auth/undo/check': useUndo('undo/check'),
  'POST /api/auth/undo': useUndo('undo'),
  'GET /api/protected': rest('GET', '/api/protected'),
  'GET /api/audit': rest('GET', '/api/audit'),
  'GET /api/audit?user={id}': rest('GET', ({ owner }) => `/api/audit?user=${owner.id}`),
  'GET /api/admin/overview': rest('GET', '/api/admin/overview'),
  'GET /api/admin/settings': rest('GET', '/api/admin/settings'),
  'GET /api/admin/keys': rest('GET', '/api/admin/keys'),
  'GET /api/admin/deliveries': rest('GET', '/api/admin/deliveries'),
  'POST /api/admin/deliveries/{id}/retry': rest(
    'POST', async () => `/api/admin/deliveries/${await failedDelivery()}/retry`
  ),
  'DELETE /api/admin/deliveries/{id}': rest('DELETE', async () => `/api/admin/deliveries/${await failedDelivery()}`),
  'POST /api/uploads': sendUpload,
  'GET /api/uploads': rest('GET', '/api/uploads'),
  'OPTIONS /api/uploads/resumable': tus('OPTIONS'),
  'POST /api/uploads/resumable': tus('POST'),
  'GET /api/uploads/resumable': tus('GET'),
  'GET /api/uploads/resumable/{id}': tus('GET', beginUpload),
  'PATCH /api/uploads/resumable/{id}': tus('PATCH', beginUpload),
  'DELETE /api/uploads/resumable/{id}': tus('DELETE', beginUpload),
  'GET /api/uploads?user={id}': rest('GET', ({ owner }) => `/api/uploads?user=${owner.id}`),
  'GET /api/uploads/usage': rest('GET', '/api/uploads/usage'),
  'GET /api/uploads/{id}': rest('GET', () => upload.json().fileUrl as string),
  'GET /api/uploads/{id}, private': rest(
    'GET', async ({ owner }) => `/api/uploads/${await uploadOf(owner, 'private')}`
  ),
  'GET /api/uploads/{id}/record': rest('GET', async ({ owner }) => `/api/uploads/${await uploadOf(owner)}/record`),
  'GET /api/uploads/{id}/record, private': rest(
    'GET', async ({ owner }) => `/api/uploads/${await uploadOf(owner, 'private')}/record`
  ),
  'PATCH /api/uploads/{id}': rest('PATCH', async ({ owner }) => `/api/uploads/${await uploadOf(owner)}`, () => ({})),
  'PATCH /api/uploads/{id}, private': rest(
    'PATCH', async ({ owner }) => `/api/uploads/${await uploadOf(owner, 'private')}`, () => ({})
  ),
  'DELETE /api/uploads/{id}': rest('DELETE', async ({ owner }) => `/api/uploads/${await uploadOf(owner)}`),
  'POST /api/uploads/{id}/links': rest(
    'POST', async ({ owner }) => `/api/uploads/${await uploadOf(owner)}/links`, () => ({ seconds: 60 })
  ),
  'GET /api/uploads/{id}/links': rest('GET', async ({ owner }) => `/api/uploads/${await uploadOf(owner)}/links`),
  'GET /api/uploads/{id}/links, private': rest(
    'GET', async ({ owner }) => `/api/uploads/${await uploadOf(owner, 'private')}/links`
  ),
  'DELETE /api/uploads/{id}/links/{linkId}': async (headers, { owner }) => {
    const id = await uploadOf(owner)
    const link = await inject(
      'POST', `/api/uploads/${id}/links`, { headers: owner.headers, payload: { seconds: 60 } }
    )
    return inject('DELETE', `/api/uploads/${id}/links/${link.json().id}`, { headers })
  },
  'GET /api/posts': rest('GET', '/api/posts'),
  'POST /api/posts': rest('POST', '/api/posts', () => ({ title: 'A', content: '' })),
  'POST /api/posts, with authorId': rest(
    'POST', '/api/posts', ({ owner }) => ({ title: 'A', content: '', authorId: owner.id })
  ),
  'GET /api/posts/events': async (headers) => {
    const url = `${usher.prefix}/api/posts/events`
    const response = await usher.app.inject({ method: 'GET', url, headers, payloadAsStream: true })
    response.stream().destroy()
    return response
  },
  'GET /api/posts/drafts': rest('GET', '/api/posts/drafts'),
  'GET /api/posts/{id}': rest('GET', async ({ owner }) => `/api/posts/${await createPost(usher, owner)}`),
  'GET /api/posts/{id}, draft': rest('GET', async ({ owner }) => `/api/posts/${await draftOf(owner)}`),
  'PATCH /api/posts/{id}': rest('PATCH', async ({ owner }) => `/api/posts/${await createPost(usher, owner)}`, () => ({})),
  'PATCH /api/posts/{id}, draft': rest('PATCH', async ({ owner }) => `/api/posts/${await draftOf(owner)}`, () => ({})),
  'DELETE /api/posts/{id}': rest('DELETE', async ({ owner }) => `/api/posts/${await createPost(usher, owner)}`),
  'DELETE /api/posts/{id}, draft': rest('DELETE', async ({ owner }) => `/api/posts/${await draftOf(owner)}`),
  'GET /api/redirect': rest('GET', '/api/redirect'),
  'GET /health/live': rest('GET', '/health/live'),
  'GET /health/ready': rest('GET', '/health/ready'),
  'GET /.well-known/jwks.json': rest('GET', '/.well-known/jwks.json'),
  'GET /.well-known/webauthn': rest('GET', '/.well-known/webauthn'),
  'query user': graphql(({ owner }) => `{ user(id: "${owner.id}") { id } }`),
  'query users': graphql('{ users { nodes { id } } }'),
  'query post': graphql(async ({ owner }) => `{ post(id: "${await createPost(usher, owner)}") { id } }`),
  'query posts': graphql('{ posts { nodes { id } } }'),
  'query drafts': graphql('{ drafts { nodes { id } } }'),
  'query upload': graphql(async ({ owner }) => `{ upload(id: "${await uploadOf(owner)}") { id } }`),
  'query me': graphql('{ me { id } }'),
  'mutation createPost': graphql('mutation { createPost(input: { title: "A", content: "" }) { id } }'),
  'mutation createPost, with authorId': graphql(({ owner }) =>
    `mutation { createPost(input: { title: "A", content: "", authorId: "${owner.id}" }) { id } }`),
  'mutation updatePost': graphql(async ({ owner }) =>
    `mutation { updatePost(id: "${await createPost(usher, owner)}", input: { title: "B" }) { id } }`),
  'mutation deletePost': graphql(async ({ owner }) =>
    `mutation { deletePost(id: "${await createPost(usher, owner)}") }`),
  'mutation updateUpload': graphql(async ({ owner }) =>
    `mutation { updateUpload(id: "${await uploadOf(owner)}", input: { description: "B" }) { id } }`),
  'mutation deleteUpload': graphql(async ({ owner }) => `mutation { deleteUpload(id: "${await uploadOf(owner)}") }`),
}

/** Returns the result of a response in the words of the table. */
function verdictOf (response: LightMyRequestResponse): string {
  const { errors } = /json/.test(response.headers['content-type'] ?? '') ? response.json() : {}
  if (errors?.[0]?.extensions) return errors[0].extensions.code
  return response.statusCode < 400 ? 'yes' : `${response.statusCode}`
}

t.test('2 the table of docs/policy.md lists every route, query and mutation', async (t) => {
  const { paths } = (await inject('GET', '/docs/json')).json() as { paths: Record<string, object> }
  const routes = Object.entries(paths)
    // Those of organisations have a table and a test of their own.
    .filter(([path]) => !/\/(organizations|invitations|join)\b/.test(path))
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
  const schema = buildSchema(readFileSync(new URL('../../schema/graphql/schema.graphql', import.meta.url), 'utf8'))
  const operations = [schema.getQueryType()!, schema.getMutationType()!]
    .flatMap((type) => Object.keys(type.getFields()).map((name) => `${type.name.toLowerCase()} ${name}`))
    .filter((operation) => operation !== 'query organization')
  const named = table.map(([what = '']) => what)
  const missing = [...routes.filter((route) => !route.startsWith('HEAD')), ...operations]
    .filter((each) => !named.some((name) => name === each || name.startsWith(`${each},`)))
  t.same(missing, [])
  t.same(named, Object.keys(rows), 'and the test knows each of its rows')
})

for (const [what = '', ...cells] of table) {
  t.test(`2 ${what} is permitted as docs/policy.md says`, async (t) => {
    const cases: Case[] = [
      { actor: undefined, owner: user }, { actor: user, owner: user }, { actor: user, owner: another },
      { actor: admin, owner: another },
    ]
    for (const [index, of] of cases.entries()) {
      t.equal(
        verdictOf(await rows[what]!(of.actor?.headers ?? {} as Record<string, string>, of)),
        cells[index],
        columns[index]!
      )
    }
  })
}

t.test('17.1 every request with an API key is permitted as docs/policy.md says', async (t) => {
  const keyRows = rowsOf(keySection)
  t.same(keyRows.map(([what]) => what), table.map(([what]) => what), 'the table has every row of the other one')
  const of = { actor: admin, owner: another }
  const wrong: string[] = []
  for (const [what = '', names = '', withActions, without] of sample(keyRows, 15)) {
    const needed = names === '' || names === 'a session' ? ['users:list'] : names.split(', ')
    const others = ['users:verify-email', 'users:invite'].filter((name) => !needed.includes(name))
    for (const [actions, verdict] of [[needed, withActions], [others, without]] as const) {
      granted = actions
      const { headers } = await keyed(admin)
      const found = verdictOf(await rows[what]!({ ...headers }, of))
      if (found !== verdict) wrong.push(`${what}: ${actions}: ${found} instead of ${verdict}`)
      await sql`delete from api_keys where user_id = ${admin.id}`
    }
  }
  granted = undefined
  t.same(wrong, [])
})

t.test('1.5 protected operations reject cookies, passwords, and tokens that are invalid, expired or revoked', async (t) => {
  const [payload] = [JSON.parse(Buffer.from(admin.token.split('.')[1]!, 'base64url').toString())]
  const [{ id: kid, private_key: pem }] =
    await sql`select id, private_key from signing_keys` as unknown as [{ id: string, private_key: string }]
  const key = await importPKCS8(pem, 'EdDSA')
  const sign = (claims: object) =>
    new SignJWT({ ...payload, ...claims }).setProtectedHeader({ alg: 'EdDSA', kid, typ: 'JWT' }).sign(key)
  const ended = await usher.login(admin)
  await inject('POST', '/api/auth/logout', { headers: ended.headers })
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  t.equal(
    (await inject('GET', '/api/protected', { headers: bearer(await sign({})) })).statusCode,
    200,
    'the node accepts a valid token that was signed like this'
  )
  const kinds: Record<string, Record<string, string>> = {
    'a cookie alone': { cookie: admin.cookie },
    'the password': { authorization: `Basic ${Buffer.from(`${admin.email}:${admin.password}`).toString('base64')}` },
    'no token at all': bearer('x'),
    'a token that was changed': bearer(`${admin.token.slice(0, -4)}AAAA`),
    'a token that has expired': bearer(await sign({ iat: payload.iat - 3600, exp: payload.iat - 1 })),
    'a token of a session that has ended': bearer(ended.token),
    "a token of nobody's session": bearer(await sign({ iss: 'another' })),
  }
  const accepted: string[] = []
  for (const [kind, headers] of Object.entries(kinds)) {
    for (const [what = '', nobody] of sample(table, 15)) {
      // Logout accepts the cookie as well.
      if (nobody === 'yes' || nobody === '404' || (kind === 'a cookie alone' && what === 'POST /api/auth/logout')) continue
      const verdict = verdictOf(await rows[what]!(headers, { actor: undefined, owner: user }))
      if (!['401', 'UNAUTHENTICATED', 'INVALID_TOKEN'].includes(verdict)) accepted.push(`${kind}: ${what}: ${verdict}`)
    }
  }
  t.same(accepted, [])
  t.equal((await app.inject({ method: 'GET', url: '/api/protected', headers: admin.headers })).statusCode, 200)
})

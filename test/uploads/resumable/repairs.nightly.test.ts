import { randomUUID } from 'node:crypto'
import t from 'tap'
import { codeOf } from '../../../plugins/sign-in/totp/codes.ts'
import { createUsher, type LoggedIn } from '../../helpers/app.ts'
import { createMailer } from '../../helpers/mail.ts'
import { openScope } from '../../helpers/scope.ts'

const VERSION = { 'tus-resumable': '1.0.0' }
const inbox = createMailer()
const usher = await createUsher(t, {
  mailer: inbox.mailer, publicUrl: 'https://example.com', loginMail: true, secret: 'a secret of the node',
})
const { inject, admin, app } = usher
const scope = await openScope(t, usher.options)
const NEW = 'another long password'

const patch = ({ id }: LoggedIn, payload: object, { headers } = admin) =>
  inject('PATCH', `/api/users/${id}`, { headers, payload })
const addApp = async ({ headers }: LoggedIn) => {
  const { secret } = (await inject('POST', '/api/auth/totp', { headers })).json()
  return inject('POST', '/api/auth/totp/confirm', { headers, payload: { code: codeOf(secret, Math.floor(Date.now() / 30_000)) } })
}

interface Change {
  /** Comes before the upload is begun. */
  prepare? (user: LoggedIn): Promise<unknown>
  make (user: LoggedIn): Promise<unknown>
}

const undo = async (user: LoggedIn) =>
  inject('POST', '/api/auth/undo', { payload: { token: await inbox.token(user.email) } })

// The repairs of contract 11.3.
const repairs: Record<string, Change> = {
  'a reset by mail': {
    async make ({ email }) {
      await inject('POST', '/api/auth/password-reset', { payload: { email } })
      return inject('POST', '/api/auth/password-reset/confirm', { payload: { token: await inbox.token(email), password: NEW } })
    },
  },
  'an undo of another address': {
    make: async (user) => {
      await patch(user, { email: `${randomUUID()}@example.com` }, user)
      return undo(user)
    },
  },
  'an undo of another password': {
    prepare: ({ headers, password }) =>
      inject('PUT', '/api/auth/password', { headers, payload: { currentPassword: password, password: NEW } }),
    make: undo,
  },
  'a login by mail of somebody who was not verified': {
    async make ({ email }) {
      const { loginId } = (await inject('POST', '/api/auth/login/mail', { payload: { email, cookie: false } })).json()
      return inject('POST', '/api/auth/login/mail/confirm', { payload: { token: await inbox.token(email), loginId } })
    },
  },
  'a password of the operator': {
    async make ({ id }) {
      const { usherAccounts: accounts, usherAccess: { createHostCaller }, usherSignIn: { passwords } } = scope
      return accounts.setPassword(createHostCaller({ via: 'command' }), id, await passwords.hash(NEW))
    },
  },
  disabling: {
    async make (user) {
      await patch(user, { disabled: true })
      return patch(user, { disabled: false })
    },
  },
  'the role admin': { make: (user) => patch(user, { role: 'admin' }) },
  'the end of all sessions': {
    make: ({ id }) => inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers }),
  },
  'a reset of the second factor': {
    prepare: addApp,
    make: ({ id }) => app.usher.credentials.resetSecondFactor(id),
  },
}

// What the owner does keeps what the owner has begun.
const others: Record<string, Change> = {
  'another name': { make: (user) => patch(user, { name: 'Another' }) },
  'another password of the own': {
    make: ({ headers, password }) =>
      inject('PUT', '/api/auth/password', { headers, payload: { currentPassword: password, password: NEW } }),
  },
  'the end of the own sessions': { make: ({ headers }) => inject('DELETE', '/api/auth/sessions', { headers }) },
  'a logout': { make: ({ headers }) => inject('POST', '/api/auth/logout', { headers }) },
}

async function headersOf ({ id }: LoggedIn) {
  const { token } = await app.usher.sessions.start(id, { amr: ['mfa'] })
  return { authorization: `Bearer ${token}`, ...VERSION }
}

async function statusAfter ({ prepare, make }: Change): Promise<number> {
  const user = await usher.createUser()
  await prepare?.(user)
  const begun = await inject('POST', '/api/uploads/resumable', {
    headers: { ...await headersOf(user), 'upload-length': '3' },
  })
  t.equal(begun.statusCode, 201)
  const made = await make(user) as { statusCode?: number, body?: string } | undefined
  t.ok((made?.statusCode ?? 200) < 300, `${made?.body}`)
  return (await inject('HEAD', String(begun.headers.location), { headers: await headersOf(user) })).statusCode
}

t.test('13.5 unfinished uploads are void after every repair of the account', async (t) => {
  for (const [name, repair] of Object.entries(repairs)) t.equal(await statusAfter(repair), 404, name)
})

t.test('13.5 and go on after what is none', async (t) => {
  for (const [name, change] of Object.entries(others)) t.equal(await statusAfter(change), 200, name)
})

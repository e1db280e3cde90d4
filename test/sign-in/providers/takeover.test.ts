import t from 'tap'
import { createMailer, tokenIn } from '../../helpers/mail.ts'
import { errorIn, openProviders, startProvider } from '../../helpers/provider.ts'
import { openScope } from '../../helpers/scope.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'
import type { Mail } from '../../../schema/options/options.ts'

const isResetFor = (email: string) => ({ to, text }: Mail): boolean =>
  to === email && text.includes('/set-password#token=')

// One provider proves addresses, the other does not.
const [proving, unproving] = [await startProvider(t), await startProvider(t)]
const inbox = createMailer()
const usher = await openProviders(t, {
  mailer: inbox.mailer,
  providers: {
    proving: { ...proving.options, signUp: true },
    unproving: { ...unproving.options, signUp: true, trustEmail: false },
  },
})
const { inject, createUser, begin, beginFor, finish, logIn, sessionOf } = usher
const sql = openSql(t, usher)
const fakes = { proving, unproving }

const identitiesOf = async (userId: string) =>
  (await sql`select subject from identities where user_id = ${userId} order by subject`).map(({ subject }) => subject)
const victimLogsIn = (id: keyof typeof fakes, email: string) =>
  logIn(id, fakes[id], { sub: `victim of ${email}`, email, email_verified: true })
const attackerLogsIn = (email: string) =>
  logIn('unproving', unproving, { sub: `attacker of ${email}`, email, email_verified: true })

async function setPassword (email: string, password: string): Promise<number> {
  await inject('POST', '/api/auth/password-reset', { payload: { email } })
  const isReset = isResetFor(email)
  await until('a link to set a password', () => inbox.mails.some(isReset))
  const token = tokenIn(inbox.mails.find(isReset)!)
  return (await inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password } })).statusCode
}

// Sudhodanan and Paverd, "Pre-hijacked accounts" (USENIX Security 2022): what an attacker prepares for the address of a
// victim. Whatever it is, the victim gets no account in which something of the attacker is left.
const prepared: Record<string, (email: string) => Promise<string>> = {
  'classic-federated merge: an account with a password': async (email) => (await createUser({ email })).id,
  'unexpired session: an account with a session that is kept alive': async (email) => {
    const attacker = await createUser({ email })
    await inject('POST', '/api/auth/refresh', { headers: { cookie: attacker.cookie } })
    return attacker.id
  },
  'trojan identifier: an account with an identity of the attacker': async (email) => {
    const attacker = await createUser({ email })
    const { url, cookie } = await beginFor(attacker, 'link', 'unproving')
    const linked = await finish('unproving', unproving.authorize(url, { sub: `attacker of ${email}` }), cookie)
    t.equal(linked.headers.location, '/account')
    return attacker.id
  },
  'unexpired address change: an account with a link that verifies the address later': async (email) => {
    const attacker = await createUser({ email })
    await inject('POST', `/api/users/${attacker.id}/email-verification`, { headers: attacker.headers })
    return attacker.id
  },
  'non-verifying provider: an account with an identity of a provider that proves no address': async (email) => {
    const attacker = await createUser({ email })
    await sql`insert into identities (id, user_id, provider, issuer, subject)
      values (gen_random_uuid(), ${attacker.id}, 'unproving', ${unproving.issuer}, ${`attacker of ${email}`})`
    t.equal((await sessionOf(await attackerLogsIn(email))).id, attacker.id)
    return attacker.id
  },
}

for (const [index, [name, prepare]] of Object.entries(prepared).entries()) {
  t.test(`16.5 no takeover: ${name}`, async (t) => {
    const email = `victim${index}@example.com`
    const id = await prepare(email)
    const before = await identitiesOf(id)
    const [known] = await sql`select email_verified as verified from users where id = ${id}`
    t.equal(known!.verified, false, 'nobody has verified the address')
    t.equal(errorIn(await victimLogsIn('proving', email)), 'ACCOUNT_UNVERIFIED')
    t.equal(errorIn(await victimLogsIn('unproving', email)), 'EMAIL_UNPROVEN')
    t.strictSame(await identitiesOf(id), before)

    t.equal(await setPassword(email, 'only the victim knows it'), 204, 'the way out')
    t.strictSame(await identitiesOf(id), [], 'no identity of the attacker is left')
    t.equal((await sql`select id from sessions where user_id = ${id}`).length, 0, 'nor a session')
    t.equal(errorIn(await attackerLogsIn(email)), 'EMAIL_UNPROVEN', 'the attacker gets in no more')
    t.equal((await sessionOf(await victimLogsIn('proving', email))).id, id, 'and the victim does')
    t.strictSame(await identitiesOf(id), [`victim of ${email}`])
  })
}

t.test('16.5 an identity is linked to an account only if both have verified the address and the provider is trusted', async (t) => {
  const rows = [
    // [the account has verified, the provider has, the provider, the result]
    [true, true, 'proving', null],
    [true, false, 'proving', 'EMAIL_UNPROVEN'],
    [true, undefined, 'proving', 'EMAIL_UNPROVEN'],
    [true, 'yes', 'proving', 'EMAIL_UNPROVEN'],
    [false, true, 'proving', 'ACCOUNT_UNVERIFIED'],
    [true, true, 'unproving', 'EMAIL_UNPROVEN'],
  ] as const
  for (const [account, provider, id, error] of rows) {
    const { email, id: userId } = await createUser()
    await sql`update users set email_verified = ${account} where id = ${userId}`
    const loggedIn = await logIn(id, fakes[id], {
      sub: `subject of ${email}`, email: email.toUpperCase(), email_verified: provider,
    })
    t.equal(errorIn(loggedIn), error, `${account} ${provider} ${id}`)
    t.equal((await identitiesOf(userId)).length, error === null ? 1 : 0)
  }
})

t.test('16.5 nothing is linked by itself to an account with a second factor, nor beside an identity of the same provider, nor if it is disabled', async (t) => {
  const attempt = async (change: (userId: string) => Promise<unknown>) => {
    const { email, id } = await createUser()
    await sql`update users set email_verified = true where id = ${id}`
    await change(id)
    return errorIn(await victimLogsIn('proving', email))
  }
  t.equal(await attempt((id) => sql`insert into totp (user_id, secret, confirmed_at) values (${id}, 'AAAA', now())`), 'LINK_REQUIRED')
  t.equal(await attempt((id) => sql`insert into identities (id, user_id, provider, issuer, subject)
    values (gen_random_uuid(), ${id}, 'proving', ${proving.issuer}, ${`other of ${id}`})`), 'LINK_REQUIRED')
  t.equal(await attempt((id) => sql`update users set disabled = true where id = ${id}`), 'ACCOUNT_DISABLED')
})

t.test('16.5 an operator who resets the password removes what a thief has linked', async (t) => {
  const thief = await createUser()
  const { url, cookie } = await beginFor(thief, 'link', 'unproving')
  await finish('unproving', unproving.authorize(url, { sub: 'a thief' }), cookie)
  const loggedIn = await sessionOf(await logIn('unproving', unproving, { sub: 'a thief' }))
  t.equal(loggedIn.id, thief.id)
  const { usherAccounts: accounts, usherAccess: access } = await openScope(t, usher.options)
  await accounts.setPassword(access.createHostCaller({ via: 'command' }), thief.id, 'a hash')
  t.strictSame(await identitiesOf(thief.id), [])
  t.equal(errorIn(await logIn('unproving', unproving, { sub: 'a thief' })), 'PROVIDER_EMAIL_MISSING')
})

t.test('16.5 a link that another browser or user has begun links nothing (econumo#238)', async (t) => {
  const [attacker, victim] = [await createUser(), await createUser()]
  const begun = await beginFor(attacker, 'link', 'unproving')
  const response = unproving.authorize(begun.url, { sub: 'of the attacker' })
  const ofVictim = await begin('unproving', { cookie: victim.cookie })
  const followed = await finish('unproving', response, `${victim.cookie}; ${ofVictim.cookie}`)
  t.equal(errorIn(followed), 'INVALID_STATE')
  t.strictSame([await identitiesOf(attacker.id), await identitiesOf(victim.id)], [[], []])
})

const cookieOf = ({ cookies }: Awaited<ReturnType<typeof attackerLogsIn>>, name: string) =>
  cookies.find((cookie) => cookie.name === name)?.value

t.test('16.5 a provider that proves no address neither tells whether it has an account, nor holds it', async (t) => {
  const taken = await createUser()
  const email = `free-${taken.email}`
  const [free, known] = [await attackerLogsIn(email), await attackerLogsIn(taken.email)]
  const shape = ({ statusCode, headers, cookies }: typeof free) => ({
    statusCode, location: headers.location, headers: Object.keys(headers), cookies: cookies.map(({ name }) => name),
  })
  t.strictSame(shape(free), shape(known))
  t.equal(errorIn(free), 'EMAIL_UNPROVEN')
  t.equal(cookieOf(free, 'usher_session'), undefined)
  t.equal((await sql`select from users where email = ${email}`).length, 0, 'nobody has the address')
  const subjects = async (to: string) => (await inbox.of(to, 1)).map(({ subject }) => subject)
  t.strictSame([await subjects(email), await subjects(taken.email)], [['Confirm your account'], ['You already have an account']])

  // The owner of the mailbox signs up meanwhile, or is created, and nothing of the attacker is in the way.
  t.equal((await createUser({ email })).email, email)
})

t.test('16.5 the link of the mail creates the account with the identity in the browser that has begun it, without a password', async (t) => {
  const email = 'newcomer@example.com'
  const begun = await attackerLogsIn(email)
  const token = await inbox.token(email)
  const cookie = `usher_sign_up=${cookieOf(begun, 'usher_sign_up')}`
  const check = await inject('POST', '/api/auth/sign-up/check', { payload: { token }, headers: { cookie } })
  t.strictSame([check.statusCode, check.headers['password-required']], [200, undefined])
  const confirmed = await inject('POST', '/api/auth/sign-up/confirm', { payload: { token }, headers: { cookie } })
  t.equal(confirmed.statusCode, 201, confirmed.body)
  t.match(confirmed.json(), { email, emailVerified: true })
  const { id } = confirmed.json()
  t.strictSame(await identitiesOf(id), [`attacker of ${email}`])
  t.equal((await sessionOf(await attackerLogsIn(email))).id, id, 'and the provider logs in')
  const actions = (await sql`select action from audit where user_id = ${id} order by id`).map(({ action }) => action)
  t.strictSame(actions, ['user.sign-up', 'identity.add', 'login'])
})

t.test('16.5 in any other browser the link asks for a password, and the identity is forgotten', async (t) => {
  const email = 'victim-elsewhere@example.com'
  await attackerLogsIn(email)
  const token = await inbox.token(email)
  const check = await inject('POST', '/api/auth/sign-up/check', { payload: { token } })
  t.equal(check.headers['password-required'], 'true')
  t.equal((await inject('POST', '/api/auth/sign-up/confirm', { payload: { token } })).json().code, 'PASSWORD_REQUIRED')
  const payload = { token, name: 'Victim', password: 'only the victim knows it' }
  const confirmed = await inject('POST', '/api/auth/sign-up/confirm', { payload })
  t.equal(confirmed.statusCode, 201, confirmed.body)
  t.strictSame(await identitiesOf(confirmed.json().id), [])
  t.equal(errorIn(await attackerLogsIn(email)), 'EMAIL_UNPROVEN', 'the attacker gets in no more')
})

t.test('16.5 two mails for one identity: the second link creates nothing', async (t) => {
  const login = (email: string) => logIn('unproving', unproving, { sub: 'of both', email })
  const links = ['one-of-two@example.com', 'two-of-two@example.com']
  const statuses: number[] = []
  const begun = []
  for (const email of links) begun.push({ email, cookie: `usher_sign_up=${cookieOf(await login(email), 'usher_sign_up')}` })
  for (const { email, cookie } of begun) {
    const payload = { token: await inbox.token(email) }
    statuses.push((await inject('POST', '/api/auth/sign-up/confirm', { payload, headers: { cookie } })).statusCode)
  }
  t.strictSame(statuses, [201, 409])
  t.equal((await sql`select from users where email = ${links[1]!}`).length, 0)
})

t.test('16.5 without a mailer, or where newcomers get no account, the answer is the same for every address', async (t) => {
  for (const [options, signUp] of [[{}, true], [{ mailer: inbox.mailer }, false]] as const) {
    const { createUser, logIn } = await openProviders(t, {
      ...options, providers: { unproving: { ...unproving.options, signUp, trustEmail: false } },
    })
    const { email } = await createUser()
    for (const address of [email, `free-${email}`]) {
      t.equal(errorIn(await logIn('unproving', unproving, { sub: address, email: address })), 'SIGN_UP_CLOSED')
    }
  }
})

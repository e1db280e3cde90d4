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
  'non-verifying provider: an account of a provider that proves no address': async (email) =>
    (await sessionOf(await attackerLogsIn(email))).id,
}

for (const [index, [name, prepare]] of Object.entries(prepared).entries()) {
  t.test(`16.5 no takeover: ${name}`, async (t) => {
    const email = `victim${index}@example.com`
    const id = await prepare(email)
    const before = await identitiesOf(id)
    const [known] = await sql`select email_verified as verified from users where id = ${id}`
    t.equal(known!.verified, false, 'nobody has verified the address')
    t.equal(errorIn(await victimLogsIn('proving', email)), 'ACCOUNT_UNVERIFIED')
    t.equal(errorIn(await victimLogsIn('unproving', email)), 'LINK_REQUIRED')
    t.strictSame(await identitiesOf(id), before)

    t.equal(await setPassword(email, 'only the victim knows it'), 204, 'the way out')
    t.strictSame(await identitiesOf(id), [], 'no identity of the attacker is left')
    t.equal((await sql`select id from sessions where user_id = ${id}`).length, 0, 'nor a session')
    t.equal(errorIn(await attackerLogsIn(email)), 'LINK_REQUIRED', 'the attacker gets in no more')
    t.equal((await sessionOf(await victimLogsIn('proving', email))).id, id, 'and the victim does')
    t.strictSame(await identitiesOf(id), [`victim of ${email}`])
  })
}

t.test('16.5 an identity is linked to an account only if both have verified the address and the provider is trusted', async (t) => {
  const rows = [
    // [the account has verified, the provider has, the provider, the result]
    [true, true, 'proving', null],
    [true, false, 'proving', 'LINK_REQUIRED'],
    [true, undefined, 'proving', 'LINK_REQUIRED'],
    [true, 'yes', 'proving', 'LINK_REQUIRED'],
    [false, true, 'proving', 'ACCOUNT_UNVERIFIED'],
    [true, true, 'unproving', 'LINK_REQUIRED'],
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
  t.equal(await attempt((id) => sql`update users set disabled = true where id = ${id}`), 'INVALID_CREDENTIALS')
})

t.test('16.5 an operator who resets the password removes what a thief has linked', async (t) => {
  const thief = await createUser()
  const { url, cookie } = await beginFor(thief, 'link', 'unproving')
  await finish('unproving', unproving.authorize(url, { sub: 'a thief' }), cookie)
  const loggedIn = await sessionOf(await logIn('unproving', unproving, { sub: 'a thief' }))
  t.equal(loggedIn.id, thief.id)
  const { usherAccounts: accounts, usherAuth: auth } = await openScope(t, usher.options)
  await accounts.setPassword(auth.createHostCaller({ via: 'command' }), thief.id, 'a hash')
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

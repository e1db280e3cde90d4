import { randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { tablesToVoid } from '../../db/mail-links/kinds.ts'
import { repairs, type Repair } from '../../db/sign-in/repairs.ts'
import { hashSecret } from '../../plugins/access/secrets.ts'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { credentialKinds, type CredentialKind } from '../../schema/sign-in/ways.ts'
import type { LoggedIn } from '../helpers/app.ts'
import { createKey } from '../helpers/api-keys.ts'
import { createUsher } from '../helpers/app.ts'
import { createMailer, tokenIn } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openPasskeys } from '../helpers/passkeys.ts'
import { openScope } from '../helpers/scope.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const inbox = createMailer()
const usher = await openPasskeys(t, { mailer: inbox.mailer, loginMail: true, secret: 'a secret of the node' })
const { inject, admin, createUser, register } = usher
const sql = openSql(t, usher)
const scope = await openScope(t, usher.options)
const NEW_PASSWORD = 'a password that only the owner knows'

/** A user who has everything that can be prepared for an account. */
interface Subject extends LoggedIn { ids: Record<CredentialKind, string> }

// A table of links that is added to the repairs has to be filled here.
const tables = [...tablesToVoid, 'sessions', 'recovery_codes', 'upload_links', 'resumable_uploads'] as const
const keys: Partial<Record<typeof tables[number], string>> = {
  sessions: 'id::text', upload_links: 'id::text', resumable_uploads: 'case when expires_at > now() then id::text end',
}

async function mailTo (email: string, path: string): Promise<string> {
  const isWanted = ({ to, text }: { to: string, text: string }) => to === email && text.includes(path)
  await until(`a mail with ${path}`, () => inbox.mails.some(isWanted))
  return tokenIn(inbox.mails.findLast(isWanted)!)
}

async function requestReset (email: string): Promise<string> {
  await inject('POST', '/api/auth/password-reset', { payload: { email } })
  return mailTo(email, '/set-password#')
}

const linkIdentity = async ({ id }: LoggedIn): Promise<string> => {
  const identityId = randomUUID()
  await sql`insert into identities (id, user_id, provider, issuer, subject)
    values (${identityId}, ${id}, 'fake', 'https://issuer.example', ${randomUUID()})`
  return identityId
}

async function addApp (user: LoggedIn): Promise<string> {
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  const payload = { code: codeOf(secret, Math.floor(Date.now() / 30_000)) }
  const { token } = (await inject('POST', '/api/auth/totp/confirm', { headers: user.headers, payload })).json()
  user.headers = { authorization: `Bearer ${token}` }
  return user.id
}

async function createSubject ({ isProved = true, days = 0 } = {}): Promise<Subject> {
  const user = await createUser()
  const ids = {
    passkey: (await register(user)).id,
    identity: await linkIdentity(user),
    'api-key': (await createKey(usher, user)).id,
    totp: await addApp(user),
  }
  if (isProved) await sql`update users set email_verified = true where id = ${user.id}`
  if (days > 0) {
    for (const table of ['passkeys', 'identities', 'api_keys']) {
      await sql`update ${sql(table)} set created_at = created_at - make_interval(days => ${days}) where user_id = ${user.id}`
    }
    await sql`update totp set confirmed_at = confirmed_at - make_interval(days => ${days}) where user_id = ${user.id}`
  }
  return { ...user, ids }
}

async function waysOf ({ id }: { id: string }): Promise<CredentialKind[]> {
  const [found] = await sql`select
    exists (select from passkeys where user_id = ${id}) as passkey,
    exists (select from totp where user_id = ${id}) as totp,
    exists (select from identities where user_id = ${id}) as identity,
    exists (select from api_keys where user_id = ${id}) as "api-key"`
  return credentialKinds.filter((kind) => found![kind])
}

const confirmReset = (payload: object) => inject('POST', '/api/auth/password-reset/confirm', { payload })
const patch = ({ id }: Subject, payload: object) =>
  inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload })
const caller = () => scope.usherAccess.createHostCaller({ via: 'command' })
const setPassword = async ({ id }: Subject, options = {}) =>
  scope.usherAccounts.setPassword(caller(), id, await scope.usherSignIn.passwords.hash(NEW_PASSWORD), options)

// How each repair happens. One that is added to the table has to be added here.
const happen: Record<Exclude<Repair, 'first-admin'>, (subject: Subject) => Promise<unknown>> = {
  'first-proof': async (subject) => {
    await sql`update users set email_verified = false where id = ${subject.id}`
    return confirmReset({ token: await requestReset(subject.email), password: NEW_PASSWORD })
  },
  'mail-reset': async ({ email }) => confirmReset({ token: await requestReset(email), password: NEW_PASSWORD }),
  // The first mail was sent before everything else was added.
  undo: async ({ id }) => {
    const [token] = await sql`select hash from undo_links where user_id = ${id} order by position limit 1`
    const secret = randomBytes(32).toString('base64url')
    await sql`update undo_links set hash = ${hashSecret(secret)} where hash = ${token!['hash']}`
    return inject('POST', '/api/auth/undo', { payload: { token: secret } })
  },
  'operator-reset': (subject) => setPassword(subject),
  'second-factor-reset': ({ id }) => usher.app.usher.credentials.resetSecondFactor(id),
  promotion: (subject) => patch(subject, { role: 'admin' }),
  disabling: (subject) => patch(subject, { disabled: true }),
  'sessions-end': ({ id }) => inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers }),
  'removal-by-admin': async (subject) => {
    const other = await linkIdentity(subject)
    return inject('DELETE', `/api/users/${subject.id}/identities/${other}`, { headers: admin.headers })
  },
}

async function keysOf (table: typeof tables[number], id: string): Promise<string[]> {
  const key = keys[table] ?? "encode(hash, 'hex')"
  const owner = table === 'upload_links' ? 'owner_id' : 'user_id'
  const rows = await sql.unsafe(`select ${key} as key from ${table} where ${owner} = '${id}'`)
  return rows.map(({ key }) => key).filter((key) => key !== null)
}

/** Prepares what a user can, besides the ways to sign in. */
async function prepareLinks ({ id, email, headers, password }: Subject): Promise<void> {
  await inject('POST', '/api/auth/login/mail', { payload: { email, cookie: false } })
  await mailTo(email, '/login/mail/confirm#')
  await requestReset(email)
  await inject('POST', '/api/auth/login', { payload: { email, password } })
  // The address is verified, so it has no link by which it is.
  await sql`insert into verification_links (hash, user_id, email, expires_at)
    values (${randomBytes(32)}, ${id}, ${email}, now() + interval '1 hour')`
  await sql`insert into upload_links (id, upload_id, owner_id, created_by, name, secret_hash, expires_at)
    values (gen_random_uuid(), gen_random_uuid(), ${id}, ${id}, 'A link', ${randomBytes(32)}, now() + interval '1 hour')`
  const started = await inject('POST', '/api/uploads/resumable', {
    headers: {
      ...headers,
      'tus-resumable': '1.0.0',
      'upload-length': '10',
      'upload-metadata': `filename ${btoa('a.txt')},description ${btoa('A text')}`,
    },
  })
  if (started.statusCode !== 201) throw new Error(`resumable: ${started.statusCode} ${started.body}`)
}

for (const [repair, run] of Object.entries(happen) as [keyof typeof happen, typeof happen[keyof typeof happen]][]) {
  t.test(`11.3 ${repair}: what is left of all that can be prepared for an account`, async (t) => {
    const subject = await createSubject()
    const { id } = subject
    await prepareLinks(subject)
    const before = new Map<string, string[]>()
    for (const table of tables) {
      before.set(table, await keysOf(table, id))
      t.ok(before.get(table)!.length > 0, `${table} are prepared`)
    }

    const response = await run(subject) as { statusCode?: number } | undefined
    t.ok((response?.statusCode ?? 200) < 300)
    const kept = credentialKinds.filter((kind) => repairs[repair][kind] === 'keep')
    t.strictSame(await waysOf(subject), kept, 'the ways to sign in that the table keeps')
    for (const table of tables) {
      const left = (await keysOf(table, id)).filter((key) => before.get(table)!.includes(key))
      t.strictSame(left, table === 'recovery_codes' && kept.includes('totp') ? before.get(table) : [], table)
    }
  })
}

t.test('11.3 a reset by mail of a proved address removes what was added in the last 30 days, and an app of the last seven', async (t) => {
  for (const [days, kept] of [
    [6, []], [8, ['totp']], [29, ['totp']], [31, ['passkey', 'totp', 'identity']],
  ] as const) {
    const subject = await createSubject({ days })
    const token = await requestReset(subject.email)
    t.equal((await confirmReset({ token, password: NEW_PASSWORD })).statusCode, 204)
    t.strictSame(await waysOf(subject), kept, `${days} days`)
  }
})

t.test('11.3 the check of a reset lists what it removes, with dates, and what is named stays', async (t) => {
  const subject = await createSubject({ days: 3 })
  const { ids } = subject
  const token = await requestReset(subject.email)
  const check = await inject('POST', '/api/auth/password-reset/check', { payload: { token } })
  t.equal(check.statusCode, 200)
  const { removes, mayKeep } = check.json()
  t.equal(mayKeep, true)
  const listed = removes.map(({ kind, id }: { kind: string, id: string }) => [kind, id])
  t.strictSame(listed, credentialKinds.map((kind) => [kind, ids[kind]]))
  for (const { addedAt } of removes) {
    t.ok(Math.abs(Date.now() - 3 * 86_400_000 - Date.parse(addedAt)) < 3_600_000, addedAt)
  }
  const keep = [ids.passkey, ids.totp, ids['api-key'], randomUUID()]
  t.equal((await confirmReset({ token, password: NEW_PASSWORD, keep })).statusCode, 204)
  t.strictSame(await waysOf(subject), ['passkey', 'totp'], 'not the identity, nor a key, which always goes')

  const unproved = await createSubject({ isProved: false, days: 100 })
  const other = await requestReset(unproved.email)
  const all = (await inject('POST', '/api/auth/password-reset/check', { payload: { token: other } })).json()
  t.equal(all.mayKeep, false)
  t.equal(all.removes.length, 4)
  const { passkey, totp } = unproved.ids
  t.equal((await confirmReset({ token: other, password: NEW_PASSWORD, keep: [passkey, totp] })).statusCode, 204)
  t.strictSame(await waysOf(unproved), [], 'nobody has proved the address, so nobody owns them')
})

t.test('11.3 who was locked out by an app of a stranger is not, after a reset by mail', async (t) => {
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  await addApp(user)
  const token = await requestReset(user.email)
  t.equal((await confirmReset({ token, password: NEW_PASSWORD })).statusCode, 204)
  const login = await inject('POST', '/api/auth/login', { payload: { email: user.email, password: NEW_PASSWORD } })
  t.equal(login.statusCode, 200)
})

t.test('4.7 an operator keeps what can log in by itself, or removes the second factor, only if told so', async (t) => {
  const kept = await createSubject()
  const { remaining, removed } = await setPassword(kept, { keepWays: true })
  t.strictSame(removed, [])
  t.strictSame(remaining.map(({ kind, id }) => [kind, id]), credentialKinds.map((kind) => [kind, kept.ids[kind]]))
  t.strictSame(await waysOf(kept), credentialKinds)
  const reset = await createSubject()
  t.strictSame((await setPassword(reset, { resetSecondFactor: true })).remaining, [])
  t.strictSame(await waysOf(reset), [])
})

nightly('4 a first admin from an existing user keeps nothing that can log in by itself', async (t) => {
  const target = await openPasskeys(t, { secret: 'a secret of the node' })
  const own = openSql(t, target)
  const user = await target.createUser()
  await target.register(user)
  await createKey(target, user)
  await own`update users set email_verified = true where id = ${user.id}`
  await own`delete from users where role = 'admin'`
  await createUsher(t, { ...target.options, admin: { email: user.email, password: NEW_PASSWORD } })
  const [found] = await own`select role, (select count(*)::int from passkeys where user_id = users.id) as passkeys,
    (select count(*)::int from api_keys where user_id = users.id) as keys from users where id = ${user.id}`
  t.strictSame({ ...found }, { role: 'admin', passkeys: 0, keys: 0 })
})

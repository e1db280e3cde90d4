import { randomUUID } from 'node:crypto'
import { hash } from '@node-rs/argon2'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { post } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const inbox = createMailer()
const service = await createUsher(t, {
  mailer: inbox.mailer,
  signUp: true,
  publicUrl: 'https://api.example.com',
  admin: { email: 'Root@BÜCHER.example', password: 'horse battery staple' },
})
const { app, inject, admin, admin: { headers } } = service
const sql = openSql(t, service)
const password = 'violet engine notes'
const create = (rest: object = {}) => inject('POST', '/api/users', {
  headers, payload: { name: 'Grace', email: `${randomUUID()}@example.com`, password, ...rest },
})
const logIn = (email: string, typed = password) =>
  inject('POST', '/api/auth/login', { payload: { email, password: typed } })

t.test('1.8 a name or a title of invisible characters is blank', async (t) => {
  const invisible = [
    '\u200b', '\u200e\u200f', '\u2060\ufeff', '\u3164', '\u115f\u1160', '\uffa0', '\u{e0041}\u{e007f}', '\u00ad',
    '\u034f', '\u180e', '\u2800', '\ufe0f', '\u{e0100}', '\u061c', '\u2066\u2069', '\ufff9', '\u{1d173}',
    '\u3000\u200b \u00a0', '\u17b4',
  ]
  for (const text of invisible) {
    const code = JSON.stringify(text)
    t.same((await create({ name: text })).json(), { errors: ['name must not be blank'] }, code)
    const user = (await create()).json()
    for (const method of ['PUT', 'PATCH'] as const) {
      const payload = { name: text, email: user.email }
      const changed = await inject(method, `/api/users/${user.id}`, { headers, payload })
      t.same([changed.statusCode, changed.json()], [400, { errors: ['name must not be blank'] }], `${method} ${code}`)
    }
    const payload = { name: text, email: 'x@example.com', password }
    const signUp = await inject('POST', '/api/auth/sign-up', { payload })
    t.same(signUp.json(), { errors: ['name must not be blank'] }, code)
    const query = 'mutation ($title: String!) { createPost(input: { title: $title, content: "x" }) { id } }'
    const { errors } = await post(service, { query, variables: { title: text } }, admin)
    t.match(errors, [{ message: 'title must not be blank' }], code)
  }
  for (const name of ['\u200fعلي', '👩\u200d🚀', 'ก\u0e34', 'é', '\u{1f3f4}\u{e0067}\u{e007f}', '-', 'می\u200cخواهم']) {
    t.equal((await create({ name })).json().name, name, 'such characters within a name remain')
  }
})

t.test('2.2 an internationalized domain and its xn-- form are the same account', async (t) => {
  const ascii = 'Grace@xn--bcher-kva.example'
  const spellings = [
    'Grace@bücher.example', 'grace@BÜCHER.EXAMPLE', 'grace@bu\u0308cher.example', 'GRACE@xn--bcher-kva.example',
    'grace@XN--BCHER-KVA.Example', 'grace@bücher。example',
  ]
  const created = await create({ email: spellings[0]! })
  t.same([created.statusCode, created.json().email], [201, ascii])
  const { id } = created.json()
  for (const email of spellings) {
    t.equal((await create({ email })).json().code, 'EMAIL_TAKEN', email)
    t.equal((await logIn(email)).statusCode, 200, email)
    const found = await inject('GET', `/api/users?${new URLSearchParams({ email })}`, { headers })
    t.same(found.json().map((user: { id: string }) => user.id), [id], email)
    t.same((await app.usher.users.find(email))!.id, id)
  }
  for (const q of ['bücher', 'BÜCHER', 'grace@bücher', 'grace@bücher.exam', 'xn--bcher', 'bücher.example']) {
    const found = await inject('GET', `/api/users?${new URLSearchParams({ q, sort: '-createdAt' })}`, { headers })
    t.ok(found.json().some((user: { id: string }) => user.id === id), q)
  }
  await inject('POST', '/api/auth/password-reset', { payload: { email: 'grace@bücher.example' } })
  const token = await inbox.token(ascii)
  const payload = { token, password: 'another violet engine' }
  const confirmed = await inject('POST', '/api/auth/password-reset/confirm', { payload })
  t.equal(confirmed.statusCode, 204)
  t.equal((await logIn('grace@bücher.example', 'another violet engine')).statusCode, 200)
  t.equal(admin.email, 'Root@BÜCHER.example')
  t.equal((await app.usher.users.find('root@bücher.example'))!.role, 'admin', 'the option admin takes either')

  const invited = (await create({ email: 'ivan@пример.com', password: undefined })).json()
  t.equal(invited.email, 'ivan@xn--e1afmkfd.com')
  t.equal((await inject('POST', `/api/users/${invited.id}/invitation`, { headers })).statusCode, 202)
  t.equal((await inbox.of(invited.email, 1)).length, 1)
  await inject('POST', '/api/auth/sign-up', { payload: { name: 'Sign', email: 'sign@straße.example', password } })
  t.equal((await inbox.of('sign@xn--strae-oqa.example', 1)).length, 1)
})

nightly('2.2 an address with a domain that cannot exist gets 400, and finds nobody', async (t) => {
  const bad = [
    'g@bücher/x.example', 'g@bücher?.example', 'g@bü%41.example', 'g@bücher:80', 'g@１２７.０.０.１', 'g@ex／ample.com',
    'g@ü..example', 'g@ü.example.', 'g@.ü', 'g@xn--a.example', 'g@xn--abc.example', 'g@xn--zzzzzz.example', 'g@ü.xn--a',
    'g@\ufffd.example', `g@${'ü'.repeat(80)}.example`, `g@${'ü.'.repeat(200)}de`, `g@${'ü'.repeat(100_000)}`,
    'ü@example.com', 'g@ü', 'g@ü@ü.example', 'g@bücher .example', 'g@ü_.example', '@bücher.example',
  ]
  for (const email of bad) {
    const code = email.slice(0, 40)
    t.same((await create({ email })).json(), { errors: ['email must be an email address'] }, code)
    if (email.length > 1024) continue
    t.equal((await logIn(email)).statusCode, 401, code)
    t.same((await inject('GET', `/api/users?${new URLSearchParams({ email })}`, { headers })).json(), [], code)
    t.equal((await inject('POST', '/api/auth/password-reset', { payload: { email } })).statusCode, 202, code)
  }
  const withLabels = (length: number) =>
    `${'g'.repeat(64)}@${Array.from({ length }, () => 'ü'.repeat(20)).join('.')}.example`
  t.equal((await create({ email: withLabels(4) })).statusCode, 201)
  const tooLong = (await create({ email: withLabels(8) })).json()
  t.same(tooLong, { errors: ['email must be at most 254 bytes'] }, 'the limit holds for the ASCII form')
})

nightly('4 a password can be typed on any keyboard', async (t) => {
  const [composed, decomposed] = ['ö überzählig'.normalize('NFC'), 'ö überzählig'.normalize('NFD')]
  for (const [chosen, typed] of [[composed, decomposed], [decomposed, composed]] as const) {
    const { email } = (await create({ password: chosen })).json()
    t.same(await Promise.all([chosen, typed].map(async (form) => (await logIn(email, form)).statusCode)), [200, 200])
    t.equal((await logIn(email, `${typed}!`)).statusCode, 401)
    const user = await service.login({ email, password: typed })
    const change = (currentPassword: string, password: string) =>
      inject('PUT', '/api/auth/password', { headers: user.headers, payload: { currentPassword, password } })
    t.same((await change(chosen, typed)).json(), { errors: ['password must differ from the current one'] })
    t.equal((await change(typed, 'the next é password')).statusCode, 204)
    t.equal((await logIn(email, 'the next é password'.normalize('NFD'))).statusCode, 200)
  }
})

nightly('4 a password that another system has hashed as it was typed is accepted like that, and renewed', async (t) => {
  const decomposed = 'ö überzählig'.normalize('NFD')
  const { id, email } = (await create()).json()
  const former = await hash(decomposed, { memoryCost: 8, timeCost: 1, parallelism: 1 })
  const stored = async () => (await sql`select password_hash as hash from users where id = ${id}`)[0]!['hash']
  await sql`update users set password_hash = ${former} where id = ${id}`
  t.equal((await logIn(email, decomposed.normalize('NFC'))).statusCode, 401, 'nobody knows what it is the hash of')
  t.equal(await stored(), former)
  t.equal((await logIn(email, decomposed)).statusCode, 200)
  t.not(await stored(), former)
  t.equal((await logIn(email, decomposed.normalize('NFC'))).statusCode, 200)
  const renewed = await stored()
  t.equal((await logIn(email, decomposed)).statusCode, 200)
  t.equal(await stored(), renewed, 'once')
})

t.test('4 a login takes the same work for an unknown address, whatever form the password has', async (t) => {
  const counted = async () => {
    const metric = (await app.usher.metrics()).find(({ name }) => name === 'usher_password_hashes_total')
    const [sample] = metric!.samples
    return sample && 'value' in sample ? sample.value : NaN
  }
  const work = async (email: string, typed: string) => {
    const before = await counted()
    t.equal((await logIn(email, typed)).statusCode, 401)
    return await counted() - before
  }
  const known = (await create()).json().email
  const withoutPassword = (await create({ password: undefined })).json().email
  const kinds = [['plain words', 1], ['wörter'.normalize('NFC'), 1], ['wörter'.normalize('NFD'), 2]] as const
  for (const [typed, hashes] of kinds) {
    for (const email of [known, withoutPassword, 'nobody@example.com']) {
      t.equal(await work(email, typed), hashes, `${email} ${typed}`)
    }
  }
})

t.test('4 the limits of a new password are those of its composed form', async (t) => {
  const decomposed = (length: number) => 'é'.repeat(length).normalize('NFD')
  t.same((await create({ password: decomposed(7) })).json(), { errors: ['password must be at least 8 characters'] })
  t.equal((await create({ password: decomposed(8) })).statusCode, 201)
  const longest = (await create({ password: decomposed(256) })).json()
  t.equal((await logIn(longest.email, decomposed(256))).statusCode, 200)
  t.same((await create({ password: decomposed(257) })).json(), { errors: ['password must be at most 256 characters'] })
  const own = await create({ name: 'Zoé Émile Björk', password: 'zoé émile björk'.normalize('NFD') })
  t.same(own.json(), { errors: ['password must not be the name or the email address'] })
  const address = await create({ email: 'zoe@bücher.example', password: 'zoe@bücher.example' })
  t.same(address.json(), { errors: ['password must not be the name or the email address'] })
})

import { chmodSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import {
  forgetPasswordKinds, listPasswordKinds, openSignerKey, reencryptSignerKeys,
} from '../../../db/sign-in/password-kinds.ts'
import { importUsers as insertUsers } from '../../../db/users/import-users.ts'
import { importUsers } from '../../../node/imports/import-users.ts'
import { MAX_LINE_BYTES } from '../../../node/imports/lines.ts'
import { noFields } from '../../../schema/users/user-fields.ts'
import type { UsherOptions } from '../../../schema/options/options.ts'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { importsOf, linesOf, SECRET } from '../../helpers/imports.ts'
import { nightly } from '../../helpers/nightly.ts'
import { firebase, hashers } from '../../helpers/password-hashes.ts'
import { startWithEvents } from '../../helpers/outbox-events.ts'
import { until } from '../../helpers/until.ts'

const userFields = Type.Object({
  bio: Type.Optional(Type.String()),
  points: Type.Optional(Type.Integer()),
  ratio: Type.Optional(Type.Number()),
  isVip: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Type.Array(Type.String())),
})

const open = async (t: Test, options: UsherOptions = {}) =>
  importsOf(t, await createUsher(t, { secret: SECRET, ...options }))

const userOf = (name: string, more: object = {}) => ({ name, email: `${name}@example.com`, ...more })

const statusOf = async ({ inject }: TestUsher, email: string, password: string) =>
  (await inject('POST', '/api/auth/login', { payload: { email, password } })).statusCode

t.test('16.7 imported users of all families log in with their old passwords, and are hashed anew', async (t) => {
  const { usher, sql, write, run, folder } = await open(t)
  const families = Object.entries(hashers)
  const users = await Promise.all(families.map(async ([family, hash], index) =>
    userOf(`user${index}`, { passwordHash: await hash(`password of ${family}`) })))
  const config = join(folder, 'firebase.txt')
  writeFileSync(config, firebase.config)
  const result = await run('users import', write('users.ndjson', users), { 'firebase-config': config })
  t.match(result, { imported: families.length, rejected: 0, admins: 0, isFailure: false, rejectedFile: null })
  const stored = async () => (await sql`select password_hash from users where email like 'user%' order by length(email), email`)
    .map((row) => row['password_hash'] as string)
  t.notOk((await stored()).some((hash) => hash.startsWith('$argon2id$v=19$m=8,')))
  const [kind] = await sql`select * from password_kinds where kind like '$firebase%'`
  t.match(kind!['signer_key'], /^sealed1\./, 'the key of the project is encrypted')
  for (const [index, [family]] of families.entries()) {
    t.equal(await statusOf(usher, `user${index}@example.com`, `password of ${family}x`), 401, family)
    t.equal(await statusOf(usher, `user${index}@example.com`, `password of ${family}`), 200, family)
  }
  // A hash of argon2id that is as strong as new ones stays.
  t.match((await stored()).map((hash, index) => [families[index]![0], hash.split('$')[1], hash.includes('m=8,')]),
    families.map(([family]) => [family, 'argon2id', family !== 'argon2id']))
  for (const [index, [family]] of families.entries()) {
    t.equal(await statusOf(usher, `user${index}@example.com`, `password of ${family}`), 200, `${family} again`)
  }
})

t.test('16.7 all members and the host\'s fields are imported, exported and imported into an empty database', async (t) => {
  const source = await open(t, { userFields })
  const target = await open(t, { userFields })
  const full = {
    id: '5F0A2B6C-1111-4222-8333-444455556666',
    name: 'Ada "Lovelace" 山田\u0301',
    email: 'Ada@Bücher.example',
    emailVerified: true,
    role: 'admin',
    disabled: false,
    createdAt: '2001-02-03T04:05:06.123456789+01:00',
    passwordHash: await hashers.bcrypt('old password'),
    bio: 'line\nbreak',
    points: 9007199254740991,
    ratio: 0.1,
    isVip: false,
    tags: ['a', 'ü'],
  }
  const plain = { name: 'Plain', email: 'plain@example.com', disabled: true, passwordHash: null, createdAt: '2020-02-29T23:59:59Z' }
  const robot = { name: 'Robot', email: 'robot@example.com', kind: 'service', createdAt: '2020-03-01T00:00:00Z' }
  const path = source.write('users.ndjson', [full, plain, robot])
  t.match(await source.run('users import', path), { imported: 3, admins: 1, isFailure: false })
  const stored = async ({ sql }: typeof source) => sql`
    select id, name, email, email_verified, role, account_kind, disabled, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') as at,
      password_hash, bio, points, ratio, "isVip", tags from users where email not like 'admin@%' order by name`
  const rows = await stored(source)
  t.match(rows, [{
    id: full.id.toLowerCase(),
    name: full.name,
    email: 'Ada@xn--bcher-kva.example',
    email_verified: true,
    role: 'admin',
    disabled: false,
    at: '2001-02-03 03:05:06.123456',
    bio: 'line\nbreak',
    points: '9007199254740991',
    ratio: 0.1,
    isVip: false,
    tags: ['a', 'ü'],
  }, { name: 'Plain', disabled: true, email_verified: false, role: 'user', password_hash: null, bio: null, at: '2020-02-29 23:59:59.000000' }, { name: 'Robot', account_kind: 'service' }])
  t.match(rows[1]!['id'], /^0170/, 'a UUIDv7 of the time of creation, so that it has its place in lists')

  const exported = join(source.folder, 'export.ndjson')
  const result = await source.run('users export', exported)
  t.match(result, { file: exported, users: 4, admins: 2, text: `4 users, 2 admins among them, are in ${exported}.` })
  t.equal(statSync(exported).mode & 0o777, 0o600)
  t.strictSame(linesOf(exported).find(({ name }) => name === 'Plain'), {
    id: rows[1]!['id'],
    name: 'Plain',
    email: 'plain@example.com',
    emailVerified: false,
    role: 'user',
    disabled: true,
    createdAt: '2020-02-29T23:59:59.000000Z',
  })
  await t.rejects(source.run('users export', exported), { message: `${exported} exists: choose another name.` })
  const again = await target.run('users import', exported)
  t.match([again.imported, again.rejected], [3, 1], 'all but the admin that there is')
  t.strictSame(await stored(target), rows)
  t.equal(await statusOf(target.usher, 'ada@bücher.example', 'old password'), 200)
  t.equal(await statusOf(target.usher, 'plain@example.com', 'old password'), 401)
  t.match(await source.sql`select action, user_agent from audit where action = 'users.export'`, [{ user_agent: 'usher command line' }])
})

nightly('16.7 the signer key of a Firebase project is needed elsewhere, and survives other secrets', async (t) => {
  const { usher, sql, write, run, folder, openDatabase } = await open(t)
  const config = join(folder, 'firebase.txt')
  writeFileSync(config, firebase.config)
  const file = write('users.ndjson', [userOf('ada', { passwordHash: await hashers['Firebase scrypt']('old password') })])
  t.match(await run('users import', file, { 'firebase-config': config }), { imported: 1 })
  const db = await openDatabase()
  const [kind] = await listPasswordKinds(db)
  t.strictSame(openSignerKey({ secret: SECRET }, kind!.kind, kind!.signerKey!), firebase.signerKey)

  const exported = join(folder, 'export.ndjson')
  await run('users export', exported)
  const other = await open(t)
  const without = await other.run('users import', exported, { rejected: join(folder, 'rejected') })
  t.match([without.imported, without.rejected], [0, 2])
  t.match(linesOf(join(folder, 'rejected')).find(({ user }) => user.name === 'ada'), {
    reason: 'passwordHash is of a Firebase project whose parameters --firebase-config does not give',
  })
  const json = join(folder, 'firebase.json')
  writeFileSync(json, JSON.stringify({
    base64_signer_key: firebase.signerKey.toString('base64'), base64_salt_separator: 'Bw==', rounds: 8, mem_cost: 14,
  }))
  const values = { 'firebase-config': json, rejected: join(folder, 'rejected 2'), again: true }
  t.match(await other.run('users import', exported, values), { imported: 1 })
  t.equal(await statusOf(other.usher, 'ada@example.com', 'old password'), 200)

  // `keys rotate` with another secret.
  const secrets = { secret: 'another secret of many words', formerSecret: SECRET }
  t.strictSame(await reencryptSignerKeys(db, secrets), { encrypted: 1, unreadable: 0 })
  t.strictSame(await reencryptSignerKeys(db, secrets), { encrypted: 0, unreadable: 0 })
  t.strictSame(await reencryptSignerKeys(db, { secret: 'a third one' }), { encrypted: 0, unreadable: 1 })
  t.equal(await statusOf(usher, 'ada@example.com', 'old password'), 401, 'a node without that secret')
  t.match(await run('users import', file, { 'firebase-config': config, again: true }), { imported: 0, rejected: 1 })
  t.equal(await statusOf(usher, 'ada@example.com', 'old password'), 200, 'once the key was stored anew')
  t.equal((await sql`select 1 from users where email like 'ada%'`).length, 1)
})

t.test('16.7 lines that are wrong are rejected with a reason, and the others are imported', async (t) => {
  const { usher, sql, write, run } = await open(t, { userFields })
  const { admin } = usher
  const [before] = await sql`select * from users where id = ${admin.id}`
  const taken = '5f0a2b6c-1111-4222-8333-444455556666'
  const bad: [object | string, RegExp][] = [
    ['{', /not JSON/],
    ['[]', /not a JSON object/],
    ['null', /not a JSON object/],
    [{ name: 'A', email: 'a@example.com', kind: 'service', passwordHash: `$2b$04$${'a'.repeat(53)}` }, /a service user has no password/],
    ['"x"', /not a JSON object/],
    [`{"name":${'['.repeat(200_000)}${']'.repeat(200_000)},"email":"x@example.com"}`, /levels|must be/],
    [{ email: 'a@example.com' }, /^name is required$/],
    [{ name: 'A' }, /^email is required$/],
    [{ name: 1, email: true }, /name must be a string; email must be a string/],
    [{ name: 'A\0', email: 'a@example.com' }, /name must not contain control characters/],
    [{ name: '\u200b', email: 'a@example.com' }, /name must not be blank/],
    [{ name: 'A', email: 'not an address' }, /email must be an email address/],
    [{ name: 'A', email: `${'a'.repeat(300)}@example.com` }, /email/],
    [userOf('a', { password: 'plain text' }), /^password is not a member of a user$/],
    [userOf('a', { password_hash: 'x' }), /^password_hash is not a member of a user$/],
    ['{"name":"a","email":"a@example.com","__proto__":{"role":"admin"}}', /^__proto__ is not a member of a user$/],
    [userOf('a', { constructor: 'x' }), /^constructor is not a member of a user$/],
    [userOf('a', { role: 'king' }), /role must be one of admin, user/],
    [userOf('a', { emailVerified: 'true' }), /emailVerified must be a boolean/],
    [userOf('a', { id: '1' }), /id must be a UUID/],
    [userOf('a', { id: '00000000-0000-0000-0000-000000000000' }), /id must be a UUID/],
    [userOf('a', { id: `urn:uuid:${taken}` }), /id must be a UUID/],
    [userOf('a', { createdAt: '2023-02-29T00:00:00Z' }), /createdAt must be a date/],
    [userOf('a', { createdAt: '2023-01-01' }), /createdAt must be a date/],
    [userOf('a', { createdAt: '2023-01-01T24:00:00Z' }), /createdAt must be a date/],
    [userOf('a', { createdAt: '1969-12-31T23:59:59Z' }), /createdAt must be between/],
    [userOf('a', { createdAt: '9999-01-01T00:00:00Z' }), /createdAt must be between/],
    [userOf('a', { passwordHash: `$2b$31$${'a'.repeat(53)}` }), /passwordHash has a cost that is not allowed/],
    [userOf('a', { passwordHash: 'secret' }), /passwordHash has an unknown format/],
    [userOf('a', { passwordHash: await hashers['Firebase scrypt']('x') }), /--firebase-config/],
    [userOf('a', { passwordHash: 'x'.repeat(2000) }), /passwordHash must be at most 1024/],
    [userOf('a', { bio: 'x'.repeat(70_000) }), /bio must be at most 65536 bytes/],
    [userOf('a', { points: 1.5 }), /points must be an integer/],
    [userOf('a', { tags: ['\0'] }), /tags must not contain control characters/],
    [{ name: 'Thief', email: admin.email.toUpperCase(), role: 'admin', passwordHash: await hashers.bcrypt('mine') }, /^email is the address of a user/],
    [{ name: 'Thief', email: 'thief@example.com', id: admin.id, passwordHash: await hashers.bcrypt('mine') }, /^id is that of a user/],
    [userOf('first', { name: 'Second' }), /^email is the address of a user, or of an earlier line$/],
    [userOf('FIRST'), /^email is the address/],
    [userOf('other', { id: taken.toUpperCase() }), /^id is that of a user, or of an earlier line$/],
  ]
  const good = [userOf('first', { id: taken }), '', '   ', `${JSON.stringify(userOf('crlf'))}\r`]
  const path = write('users.ndjson', [`\ufeff${JSON.stringify(userOf('bom'))}`, ...good, ...bad.map(([line]) => line)])
  await appendFile(path, Buffer.concat([Buffer.from('\n{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}\n')]))
  await appendFile(path, `${' '.repeat(MAX_LINE_BYTES + 1)}\n${JSON.stringify(userOf('last'))}`)

  const checked = await run('users import', path, { 'dry-run': true })
  t.match(checked, { imported: 4, rejected: bad.length + 2, isFailure: true, rejectedFile: null })
  t.equal(checked.problems.length, 20)
  t.match(checked.text, /^4 users can be imported, 0 admins among them: .*\n41 lines were rejected:\n {2}line 6: The line is not JSON\n/)
  t.equal((await sql`select 1 from users`).length, 1, 'nobody was imported')
  t.notOk(existsSync(`${path}.rejected.ndjson`))
  t.equal((await sql`select 1 from user_imports`).length, 0)

  const result = await run('users import', path)
  t.match(result, { imported: 4, rejected: bad.length + 2, isFailure: true, rejectedFile: `${path}.rejected.ndjson` })
  t.equal(statSync(result.rejectedFile).mode & 0o777, 0o600)
  const rejected = linesOf(result.rejectedFile)
  for (const [index, [line, reason]] of bad.entries()) {
    t.match(rejected[index], { line: index + 6, reason })
    if (typeof line === 'object') t.strictSame(rejected[index].user, line, 'as it was given')
  }
  t.match(rejected.slice(-2), [
    { reason: /not UTF-8/, base64: /^[A-Za-z0-9+/=]+$/ }, { reason: /more than 4194304 bytes/, line: bad.length + 7 },
  ])
  const emails = (await sql`select email from users where role = 'user' order by 1`).map(({ email }) => email)
  t.strictSame(emails, ['bom', 'crlf', 'first', 'last'].map((name) => `${name}@example.com`))
  t.strictSame((await sql`select * from users where id = ${admin.id}`)[0], before, 'a line takes over no account')
  t.equal(await statusOf(usher, admin.email, 'mine'), 401)
  t.equal(await statusOf(usher, admin.email, admin.password), 200)

  const corrected = write('corrected.ndjson', rejected.filter(({ user }) => user?.name === 1).map(() => userOf('one')))
  t.match(await run('users import', corrected), { imported: 1, rejected: 0 })
})

nightly('16.7 an import that was interrupted continues where it was, without a duplicate or a gap', async (t) => {
  const { sql, write, openDatabase } = await open(t)
  const lines = Array.from({ length: 2500 }, (_, index) => index % 500 === 7 ? `broken ${index}` : userOf(`user${index}`))
  const path = write('users.ndjson', lines)
  const rejectedPath = join(path, '../rejected.ndjson')
  const db = await openDatabase()
  const options = { passwordHash: { memoryKiB: 8, passes: 1 }, secret: SECRET }
  const given = { db, options, fields: noFields, path, rejectedPath } as const
  const interrupted = new Error('killed')
  let batches = 0
  const failing = () => { if (++batches === 2) throw interrupted }
  await t.rejects(importUsers({ ...given, onProgress: failing }), interrupted)
  t.equal((await sql`select 1 from users where role = 'user'`).length, 2000 - 4)
  // What a process has written that was killed before its transaction ended.
  await appendFile(rejectedPath, `{"line":2008,"reason":"half of a${' long'.repeat(1000)}`)
  t.match(await importUsers(given), { imported: 2495, rejected: 5, resumed: 1996 })
  t.equal((await sql`select 1 from users where role = 'user'`).length, 2495)
  t.strictSame(linesOf(rejectedPath).map(({ line }) => line), [8, 508, 1008, 1508, 2008])
  t.equal((await sql`select 1 from audit where action = 'user.import'`).length, 2495, 'each user has one entry')

  t.match(await importUsers(given), { imported: 2495, rejected: 5, finishedAt: Date }, 'a second time does nothing')
  await sql`delete from users where email = 'user0@example.com'`
  await sql`delete from deleted_users`
  await t.rejects(importUsers({ ...given, again: true }), { message: /rejected\.ndjson exists: move it away/ })
  const again = await importUsers({ ...given, again: true, rejectedPath: `${rejectedPath}.2` })
  t.match(again, { imported: 1, rejected: 2499, resumed: 0 })
})

nightly('16.7 of two processes that import the same file, one goes on', async (t) => {
  const { sql, write, openDatabase } = await open(t)
  const path = write('users.ndjson', Array.from({ length: 1500 }, (_, index) => userOf(`user${index}`)))
  const db = await openDatabase()
  const options = { passwordHash: { memoryKiB: 8, passes: 1 } }
  const given = { db, options, fields: noFields, path, rejectedPath: `${path}.rejected` } as const
  let other: Promise<unknown> | undefined
  // Both have stored the first batch then, and are about to import the rest.
  const onProgress = (done: number, total: number) => {
    if (done < total) other ??= importUsers(given).catch((error: Error) => error)
  }
  const one = await importUsers({ ...given, onProgress }).catch((error: Error) => error)
  const outcomes = [one, await other]
  t.ok(outcomes.some((outcome) => !(outcome instanceof Error)))
  for (const outcome of outcomes) {
    if (outcome instanceof Error) t.match(outcome, { message: 'Another process imports the same file.' })
    else t.match(outcome, { imported: 1500, rejected: 0 })
  }
  t.equal((await sql`select 1 from users where role = 'user'`).length, 1500)
})

nightly('16.7 the file of rejected lines is one of its own, which nobody else can read', async (t) => {
  const { write, run, folder } = await open(t)
  const elsewhere = join(folder, 'elsewhere')
  writeFileSync(elsewhere, 'untouched')
  const path = write('users.ndjson', ['broken'])
  symlinkSync(elsewhere, `${path}.rejected.ndjson`)
  await t.rejects(run('users import', path), { message: /exists: move it away/ })
  await t.rejects(run('users import', path, { rejected: path }), { message: '--rejected must be another file than FILE.' })
  await t.rejects(run('users import', path, { rejected: join(folder, 'none/x') }), { message: /none\/x cannot be written \(ENOENT\)/ })
  const other = join(folder, 'other.ndjson')
  symlinkSync(elsewhere, other)
  await t.rejects(run('users import', path, { rejected: other }), { message: /cannot be written \(ELOOP\)/ }, 'also not when it resumes')
  t.equal(readFileSync(elsewhere, 'utf8'), 'untouched')
  await t.rejects(run('users import', folder), { message: `${folder} cannot be read (not a regular file).` })
  await t.rejects(run('users import', join(folder, 'none')), { message: /none cannot be read \(ENOENT\)/ })
  await t.rejects(
    run('users import', path, { 'firebase-config': elsewhere }), { message: /must have base64_signer_key/ }
  )
})

nightly('16.7 an import stores an entry in the account log and an event for each user, and sends no mail', async (t) => {
  const mails: unknown[] = []
  const { usher, events } = await startWithEvents(t, { secret: SECRET, mailer: async (mail) => { mails.push(mail) } })
  const { run, write, sql } = await importsOf(t, usher)
  const list = async () => (await usher.inject('GET', '/api/users?q=someone', { headers: usher.admin.headers })).json()
  t.strictSame(await list(), [])
  await run('users import', write('users.ndjson', [userOf('someone', { role: 'admin' }), userOf('someone')]))
  const [user] = await list()
  t.match(user, { email: 'someone@example.com', role: 'admin', emailVerified: false }, 'a running node sees it')
  t.match(await sql`select action, actor_id, user_id from audit where user_id = ${user.id}`, [
    { action: 'user.import', actor_id: null },
  ])
  const ofUser = () => events.filter(({ subject }) => subject === user.id)
  await until('the event arrives', async () => ofUser().length > 0)
  t.match(ofUser(), [{ type: 'user.created', data: { userId: user.id, role: 'admin', actorId: null } }])
  t.strictSame(mails, [])
})

nightly('16.7 a disabled user, one without a password and one whose hash cannot be checked get the response of a wrong password', async (t) => {
  const { usher, sql, write, run } = await open(t)
  await run('users import', write('users.ndjson', [
    userOf('disabled', { disabled: true, passwordHash: await hashers.bcrypt('old password') }),
    userOf('none'),
    userOf('broken'),
    userOf('bomb'),
  ]))
  await sql`update users set password_hash = '$md5$x' where email = 'broken@example.com'`
  await sql`update users set password_hash = ${`$2b$31$${'a'.repeat(53)}`} where email = 'bomb@example.com'`
  for (const name of ['disabled', 'none', 'broken', 'bomb', 'nobody']) {
    const { statusCode, body } = await usher.inject(
      'POST', '/api/auth/login', { payload: { email: `${name}@example.com`, password: 'old password' } }
    )
    t.strictSame([statusCode, JSON.parse(body).code], [401, 'INVALID_CREDENTIALS'], name)
  }
})

t.test('16.7 bcrypt: a password is accepted by its first 72 bytes once, and then as it was typed', async (t) => {
  const { usher, write, run } = await open(t)
  const password = 'x'.repeat(80)
  await run('users import', write('users.ndjson', [userOf('long', { passwordHash: await hashers.bcrypt(password) })]))
  t.equal(await statusOf(usher, 'long@example.com', 'x'.repeat(71)), 401)
  t.equal(await statusOf(usher, 'long@example.com', `${'x'.repeat(72)} and more`), 200)
  t.equal(await statusOf(usher, 'long@example.com', password), 401, 'what was typed counts from now on')
  t.equal(await statusOf(usher, 'long@example.com', `${'x'.repeat(72)} and more`), 200)
  t.equal(await statusOf(usher, 'long@example.com', 'x\0'), 400, 'NUL is in no password')
})

t.test('16.7 a password that the other system has not normalized is accepted in that form, too', async (t) => {
  const { usher, write, run } = await open(t)
  const decomposed = 'pa\u0308ssword of hers'
  await run('users import', write('users.ndjson', [userOf('nfd', { passwordHash: await hashers.scrypt(decomposed) })]))
  t.equal(await statusOf(usher, 'nfd@example.com', decomposed), 200)
  t.equal(await statusOf(usher, 'nfd@example.com', decomposed.normalize('NFC')), 200, 'once it was hashed anew')
})

nightly('16.7 of concurrent first logins all succeed, also beside a change of the password, and a step-up hashes anew', async (t) => {
  const { usher, sql, write, run } = await open(t)
  const passwordHash = await hashers.bcrypt('old password')
  await run('users import', write('users.ndjson', [userOf('ada', { passwordHash }), userOf('eve', { passwordHash })]))
  const logins = await Promise.all(Array.from({ length: 5 }, () => statusOf(usher, 'ada@example.com', 'old password')))
  t.strictSame(logins, [200, 200, 200, 200, 200])

  const { headers } = await usher.login({ email: 'eve@example.com', password: 'old password' })
  await sql`update users set password_hash = ${passwordHash} where email = 'eve@example.com'`
  const stepUp = await usher.inject('POST', '/api/auth/step-up', { headers, payload: { password: 'old password' } })
  t.equal(stepUp.statusCode, 200)
  t.match(await sql`select password_hash from users where email = 'eve@example.com'`, [{ password_hash: /^\$argon2id\$v=19\$m=8,/ }])
  await sql`update users set password_hash = ${passwordHash} where email = 'eve@example.com'`
  const change = usher.inject('PUT', '/api/auth/password', {
    headers, payload: { currentPassword: 'old password', password: 'another one of hers' },
  })
  const login = statusOf(usher, 'eve@example.com', 'old password')
  t.equal((await change).statusCode, 204, 'a login that renews the hash meanwhile does not make the password wrong')
  t.ok([200, 401].includes(await login))
  t.equal(await statusOf(usher, 'eve@example.com', 'another one of hers'), 200)
  t.equal(await statusOf(usher, 'eve@example.com', 'old password'), 401)
})

nightly('16.7 a kind of hashes is forgotten when no user has one, and no earlier', async (t) => {
  const { usher, sql, write, run, openDatabase } = await open(t)
  const db = await openDatabase()
  await run('users import', write('users.ndjson', [userOf('ada', { passwordHash: await hashers.bcrypt('old password') })]))
  const kinds = async () => (await listPasswordKinds(db)).map(({ kind }) => kind)
  const due = () => sql`update password_kinds set checked_at = now() - interval '2 days'`
  t.strictSame([await forgetPasswordKinds(db), await kinds()], [0, ['$2b$04$']], 'it was looked for a moment ago')
  await due()
  t.strictSame([await forgetPasswordKinds(db), await kinds()], [1, ['$2b$04$']], 'a user has it')
  await usher.login({ email: 'ada@example.com', password: 'old password' })
  const [user] = await sql`select id from users where email = 'ada@example.com'`
  await sql`insert into undo_links (hash, user_id, email, email_verified, password_hash, expires_at)
    values ('x', ${user!['id']}, 'ada@example.com', false, ${await hashers.bcrypt('x')}, now() + interval '1 day')`
  await due()
  t.strictSame([await forgetPasswordKinds(db), await kinds()], [1, ['$2b$04$']], 'an undo link restores one')
  await sql`delete from undo_links`
  await due()
  t.strictSame([await forgetPasswordKinds(db), await kinds()], [1, []])
})

nightly('16.7 there are at most ten kinds of hashes, since every failed login takes the work of all of them', async (t) => {
  const { write, run } = await open(t)
  const users = await Promise.all(Array.from({ length: 12 }, async (_, index) =>
    userOf(`user${index}`, { passwordHash: await hashers.scrypt('x', index + 1) })))
  const bcrypt = await Promise.all([4, 5].map(async (cost) => userOf(`b${cost}`, { passwordHash: await hashers.bcrypt('x', cost) })))
  const result = await run('users import', write('users.ndjson', [...bcrypt, ...users, userOf('none')]))
  t.match(result, { imported: 2 + 8 + 1, rejected: 4 })
  t.match(linesOf(result.rejectedFile)[0], { reason: /of one kind more than the 10 / })
})

nightly('16.7 a user whom a constraint or a trigger of the host refuses is rejected, and the others are imported', async (t) => {
  const { usher, sql, write, run } = await open(t, { userFields })
  await sql`alter table users add constraint short check (length(bio) < 10)`
  await sql`create unique index on users (points)`
  await sql`create function refuse() returns trigger language plpgsql as 'begin raise exception ''not this one''; end'`
  await sql`create constraint trigger refuse after insert on users deferrable initially deferred
    for each row when (new.ratio = 7) execute function refuse()`
  const users = Array.from({ length: 300 }, (_, index) => userOf(`user${index}`, {
    ...index % 100 === 7 && { bio: 'much too long' },
    ...[11, 12].includes(index) && { points: 1 },
    ...index === 20 && { ratio: 7 },
    passwordHash: '$2b$05$abcdefghijklmnopqrstuuD3mHdCr44zlIZ.VZCaYRpfQhXMYnEo.',
  }))
  const result = await run('users import', write('users.ndjson', ['broken', ...users, 'broken']))
  t.match(result, { imported: 295, rejected: 7 })
  t.match(linesOf(result.rejectedFile), [
    { line: 1 }, { line: 9, reason: /^PostgreSQL refuses it: .*constraint "short"/, user: users[7] },
    { line: 14, reason: 'a value that must be unique is that of another user' },
    { line: 22, reason: 'PostgreSQL refuses it: not this one' }, { line: 109 }, { line: 209 }, { line: 302 },
  ])
  t.equal((await sql`select 1 from users where role = 'user'`).length, 295)
  t.equal((await sql`select 1 from audit where action = 'user.import'`).length, 295)
  t.equal(await statusOf(usher, 'user299@example.com', 'correct horse battery'), 200)
})

nightly('16.7 no user is imported with the id of one who is being deleted', async (t) => {
  const { sql, openDatabase } = await open(t)
  const db = await openDatabase()
  const id = '5f0a2b6c-1111-4222-8333-444455556666'
  await sql`insert into deleted_users (user_id) values (${id})`
  const user = { id, emailVerified: false, role: 'user', kind: 'person', disabled: false, createdAt: undefined, passwordHash: null } as const
  const context = { actorId: null, sessionId: null, keyId: null, address: '', userAgent: '' }
  t.strictSame(
    await insertUsers(db, [{ ...user, name: 'A', email: 'a@example.com' }, { ...user, id: undefined, name: 'B', email: 'b@example.com' }], context),
    ['deleted', undefined]
  )
})

t.test('16.7 an import needs no permission on a file of others, and says what it cannot read', async (t) => {
  if (process.getuid?.() === 0) return t.pass('root reads every file')
  const { write, run } = await open(t)
  const path = write('users.ndjson', [userOf('a')])
  chmodSync(path, 0)
  await t.rejects(run('users import', path), { message: `${path} cannot be read (EACCES).` })
})

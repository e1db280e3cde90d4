import { execFileSync } from 'node:child_process'
import { createCipheriv, pbkdf2Sync, randomBytes, scryptSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import t from 'tap'
import { createUserParser } from '../../node/imports/parse-user.ts'
import { checkHash } from '../../plugins/sign-in/passwords/check-hash.ts'
import { IMPORT_LIMITS, parseHash } from '../../schema/sign-in/passwords/stored-hash.ts'
import { noFields } from '../../schema/users/user-fields.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { firebase } from '../helpers/password-hashes.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const document = readFileSync(new URL('../../docs/operations/import.md', import.meta.url), 'utf8')

// Returns the first block of code in a language that follows a text.
function blockAfter (text: string, language: string): string {
  const [, code = ''] = document.slice(document.indexOf(text)).split(`\`\`\`${language}\n`)
  return code.split('```')[0]!
}

const source = blockAfter('in `convert.mjs`', 'js')
const convert = await import(`data:text/javascript,${encodeURIComponent(source)}`)
const PASSWORD = 'correct horse battery'

const parameters = { keyId: firebase.keyId, separator: firebase.separator }

async function matches (hash: string): Promise<boolean> {
  const parsed = parseHash(hash, IMPORT_LIMITS, parameters)
  const [right, wrong] = await Promise.all(
    [PASSWORD, 'another'].map((password) => checkHash(parsed, Buffer.from(password), firebase.signerKey))
  )
  return right! && !wrong!
}

t.test('16.7 the recipes of docs/operations/import.md convert hashes that then match', async (t) => {
  // What each system stores, made as it makes it.
  const salt = 'nK3vd8q1Xw5z'
  const django = pbkdf2Sync(PASSWORD, salt, 1000, 32, 'sha256').toString('base64')
  t.ok(await matches(convert.fromDjango(`pbkdf2_sha256$1000$${salt}$${django}`)))
  t.ok(await matches(convert.fromDjango('bcrypt$$2b$05$abcdefghijklmnopqrstuuD3mHdCr44zlIZ.VZCaYRpfQhXMYnEo.')))
  const argon2 = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  t.equal(convert.fromDjango(`argon2${argon2}`), argon2)
  // Django 3.2 has written these, and Django 4 those of scrypt.
  for (const stored of [
    'pbkdf2_sha256$260000$0BO6Mnlgw7JDUwmFhwDtMu$WHhwGZo/qSzSmbJYjXyOaKWmVkSUjTXtNNXyYzv436w=',
    'pbkdf2_sha1$260000$burhxvBmb8xMjAppAveQ5o$NLnySsFfA4dSCUz8vez8nhKEjYk=',
    'bcrypt$$2b$12$Q33iUsef1uHlQRW9R0GwzO4k3CmfcwyNp.NlipWVb78wKCT3Wm5Ea',
    'argon2$argon2id$v=19$m=102400,t=2,p=8$azZUdzRmbEl4MUVKQ3FPdmV6RFFuYw$SQiqaelkz6lT2PAvvdTXxg',
    `scrypt$16384$${salt}$8$1$${scryptSync(PASSWORD, salt, 64, { N: 2 ** 14, r: 8, p: 1 }).toString('base64')}`,
  ]) {
    t.ok(await matches(convert.fromDjango(stored)), stored)
  }
  for (const [stored, why] of [
    ['!331RUN768N8VXwqC0eQp1VdlWnsmxXg4NH0wJLwP', 'a password that cannot be used'],
    ['!', 'the same in old versions'],
    ['', 'no password'],
    ['bcrypt_sha256$$2b$12$feOaQGdcfpy8PrphmLjPAe6GoqbafI3zF8t16Rg4urfrA/cuIU/eW', 'another algorithm'],
    ['md5$Hv47U0YnUKD3bNcZ4uLecV$fa9462a86e92a956cc0c27306d928b95', 'another algorithm'],
  ] as const) {
    t.equal(convert.fromDjango(stored), null, why)
  }

  const hex = randomBytes(16).toString('hex')
  const key = scryptSync(PASSWORD.normalize('NFKC'), hex, 64, { N: 16384, r: 16, p: 1, maxmem: 128 * 16384 * 16 * 2 })
  t.ok(await matches(convert.fromBetterAuth(`${hex}:${key.toString('hex')}`)))

  const bytes = randomBytes(16)
  for (const [algorithm, digest] of [['pbkdf2', 'sha1'], ['pbkdf2-sha256', 'sha256'], ['pbkdf2-sha512', 'sha512']] as const) {
    t.ok(await matches(convert.fromKeycloak(
      JSON.stringify({ hashIterations: 27500, algorithm, additionalParameters: {} }),
      JSON.stringify({
        value: pbkdf2Sync(PASSWORD, bytes, 27500, 64, digest).toString('base64'),
        salt: bytes.toString('base64'),
        additionalParameters: {},
      })
    )), algorithm)
  }
  t.equal(convert.fromKeycloak(
    JSON.stringify({
      hashIterations: 2,
      algorithm: 'argon2',
      additionalParameters: { hashLength: ['32'], memory: ['65536'], type: ['id'], version: ['1.3'], parallelism: ['1'] },
    }),
    JSON.stringify({ value: 'CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc', salt: 'c29tZXNhbHQ' })
  ), argon2)

  const cipherKey = scryptSync(PASSWORD, Buffer.concat([bytes, firebase.separator]), 64, { N: 2 ** 14, r: 8, p: 1 })
  const encrypted = createCipheriv('aes-256-ctr', cipherKey.subarray(0, 32), Buffer.alloc(16)).update(firebase.signerKey)
  for (const encoding of ['base64', 'base64url'] as const) {
    const user = { salt: bytes.toString(encoding), passwordHash: encrypted.toString(encoding) }
    t.ok(await matches(convert.fromFirebase(user)))
  }
})

t.test('16.7 the query of docs/operations/import.md for Supabase writes lines that are imported', async (t) => {
  const sql = postgres(await testDatabaseUrl(), { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  const parse = createUserParser({ fields: noFields, limits: IMPORT_LIMITS, now: Date.now() })
  const undo = new Error('undo')
  await t.rejects(sql.begin(async (trx) => {
    await trx`create schema auth`
    await trx`
      create table auth.users (id uuid, email text, encrypted_password text, email_confirmed_at timestamptz,
        banned_until timestamptz, deleted_at timestamptz, created_at timestamptz, raw_user_meta_data jsonb)`
    await trx`insert into auth.users values
      (gen_random_uuid(), 'ada@example.com', '$2a$10$abcdefghijklmnopqrstuuD3mHdCr44zlIZ.VZCaYRpfQhXMYnEo.', now(), null, null,
        '2020-01-02 03:04:05.678901+00', '{"full_name":"Ada"}'),
      (gen_random_uuid(), 'bob@example.com', '', null, 'infinity', null, now(), null),
      (gen_random_uuid(), null, '', null, null, null, now(), null)`
    const rows = await trx.unsafe(blockAfter('**Supabase', 'sql'))
    const users = rows.map((row) => parse(Buffer.from(JSON.stringify(row['json_build_object'])))!.user)
    t.match(users, [
      { name: 'Ada', email: 'ada@example.com', emailVerified: true, disabled: false, createdAt: '2020-01-02T03:04:05.678901Z', passwordHash: /^\$2b\$10\$/ },
      { name: 'bob@example.com', emailVerified: false, disabled: true, passwordHash: null },
    ])
    t.equal(users.length, 2)
    throw undo
  }), undo)
})

t.test('16.7 the script of docs/operations/import.md for Django writes lines that are imported, also without passwords', async (t) => {
  const parse = createUserParser({ fields: noFields, limits: IMPORT_LIMITS, now: Date.now() })
  const folder = temporaryFolder()
  // What `manage.py dumpdata auth.user --format jsonl` of Django 3.2 has written, with fewer members.
  const person = (fields: object) => JSON.stringify({
    model: 'auth.user',
    pk: 1,
    fields: {
      password: '!331RUN768N8VXwqC0eQp1VdlWnsmxXg4NH0wJLwP',
      username: 'ada',
      first_name: '',
      last_name: '',
      email: 'ada@example.com',
      is_active: true,
      date_joined: '2020-01-02T03:04:05.678Z',
      ...fields,
    },
  })
  writeFileSync(join(folder, 'django.ndjson'), [
    person({}),
    person({
      email: 'grace@example.com',
      first_name: 'Grace',
      last_name: 'Hopper',
      is_active: false,
      password: 'pbkdf2_sha256$260000$0BO6Mnlgw7JDUwmFhwDtMu$WHhwGZo/qSzSmbJYjXyOaKWmVkSUjTXtNNXyYzv436w=',
    }),
    person({ email: '' }),
  ].join('\n') + '\n')
  writeFileSync(join(folder, 'convert.mjs'), source)
  writeFileSync(join(folder, 'django.mjs'), blockAfter('**Django**', 'js'))
  const output = execFileSync(process.execPath, ['django.mjs'], { cwd: folder, encoding: 'utf8' })
  t.match(output.trim().split('\n').map((line) => parse(Buffer.from(line))!.user), [
    { name: 'ada', email: 'ada@example.com', disabled: false, createdAt: '2020-01-02T03:04:05.678000Z', passwordHash: null },
    { name: 'Grace Hopper', disabled: true, passwordHash: /^\$pbkdf2-sha256\$i=260000\$/ },
  ])
  t.equal(output.trim().split('\n').length, 2)
})

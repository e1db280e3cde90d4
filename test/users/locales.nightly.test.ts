import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { createDatabase } from '../helpers/database.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql } from '../helpers/sql.ts'

const TURKISH = "locale_provider icu icu_locale 'tr' template template0"
const locales = { C: "locale_provider libc locale 'C' template template0", Turkish: TURKISH, 'that of the server': '' }
const password = 'violet engine notes'
const NAMES = [
  'Özi Ünal', 'IŞIK Irmak', 'İnci', '山田 太郎', 'Иван Петров', 'ΟΔΥΣΣΕΥΣ', 'J\u030cani', 'Straße', 'کتاب، قلم',
  'Zoé·Émile', 'ǅemal', '𐐈deseret',
]

for (const [name, locale] of Object.entries(locales)) {
  t.test(`2.2 addresses and searches do not depend on the locale of the database: ${name}`, async (t) => {
    const inbox = createMailer()
    const databaseUrl = await createDatabase(t, { locale })
    const options = { databaseUrl, schema: 'usher', publicUrl: 'https://api.example.com' }
    const usher = await createUsher(t, { ...options, mailer: inbox.mailer, signUp: true })
    const { inject, admin: { headers } } = usher
    const create = (name: string, email = `${randomUUID()}@example.com`) =>
      inject('POST', '/api/users', { headers, payload: { name, email, password } })
    const logIn = async (email: string) =>
      (await inject('POST', '/api/auth/login', { payload: { email, password } })).statusCode
    const list = async (query: Record<string, string>): Promise<string[]> => {
      const response = await inject('GET', `/api/users?${new URLSearchParams(query)}`, { headers })
      return response.json().map(({ name }: { name: string }) => name)
    }

    await t.test('an address in another case is the same account', async (t) => {
      const info = (await create('Info', 'INFO@EXAMPLE.COM')).json()
      const again = await create('Info', 'info@example.com')
      t.same([again.statusCode, again.json().code], [409, 'EMAIL_TAKEN'])
      const spellings = ['info@example.com', 'INFO@example.com', 'Info@Example.com']
      t.same(await Promise.all(spellings.map(logIn)), [200, 200, 200])
      t.equal(await logIn('\u0131nfo@example.com'), 401, 'a Turkish i without a dot is another letter')
      t.same(await list({ email: 'info@EXAMPLE.com' }), ['Info'])
      t.same(await list({ q: 'info@exam' }), ['Info'])
      const other = (await create('Other')).json()
      const change = (id: string, email: string) => inject('PATCH', `/api/users/${id}`, { headers, payload: { email } })
      const patched = await change(other.id, 'iNFO@example.com')
      t.same([patched.statusCode, patched.json().code], [409, 'EMAIL_TAKEN'])
      const sql = openSql(t, usher)
      await sql`update users set email_verified = true where id = ${info.id}`
      const renamed = await change(info.id, 'info@example.com')
      t.match(renamed.json(), { email: 'info@example.com', emailVerified: true }, 'it is the same mailbox')
    })

    await t.test('of requests at the same time, one gets the address', async (t) => {
      const emails = Array.from({ length: 40 }, (_, index) => index % 2 ? 'IIII@EXAMPLE.COM' : 'iiii@example.com')
      const responses = await Promise.all(emails.map((email) => create('Many', email)))
      const codes = responses.map(({ statusCode }) => statusCode)
      t.same(codes.toSorted(), [201, ...Array(39).fill(409)])
    })

    await t.test('of two sign-ups in another case, one is confirmed', async (t) => {
      const signUp = async (email: string) => {
        const payload = { name: 'Iris', email, password }
        t.equal((await inject('POST', '/api/auth/sign-up', { payload })).statusCode, 202)
        return inbox.token(email)
      }
      const tokens = [await signUp('IRIS@example.com'), await signUp('iris@example.com')]
      const confirm = (token: string) =>
        inject('POST', '/api/auth/sign-up/confirm', { payload: { token, password: `pass ${token}` } })
      const responses = await Promise.all(tokens.map(confirm))
      t.same(responses.map(({ statusCode }) => statusCode).toSorted(), [201, 400])
      const { email } = responses.find(({ statusCode }) => statusCode === 201)!.json()
      await inject('POST', '/api/auth/password-reset', { payload: { email: 'iRIS@EXAMPLE.com' } })
      t.match((await inbox.of(email, 2)).at(-1), { subject: /password/ }, 'who can set a new password by any spelling')
    })

    await t.test('a search finds names in any script, case and normalization', async (t) => {
      for (const [index, name] of NAMES.entries()) {
        t.equal((await create(name.normalize(index % 2 ? 'NFD' : 'NFC'))).statusCode, 201)
      }
      // What is searched for, by the name that is found.
      const searches = [
        ['özi', 'ÖZİ', 'ünal'], ['ışık', 'IŞIK', 'işik', 'ırmak'], ['inci', 'İNCİ'], ['山田', '太郎'], ['иван', 'ПЕТРОВ'],
        ['οδυσσευς', 'ΟΔΥΣ'], ['ǰa'], ['straß', 'STRAẞE'], ['کتاب', 'قلم'], ['émile', 'ÉM'], ['ǆe'], ['𐐰des'],
      ].flatMap((found, index) => found.map((q) => [q, index] as const))
      for (const [q, index] of searches) {
        for (const form of ['NFC', 'NFD']) {
          const found = await list({ q: q.normalize(form) })
          t.same(found.map((name) => name.normalize('NFC')), [NAMES[index]], `${q} ${form}`)
        }
      }
      for (const q of ['zi', 'ван', '田太']) t.same(await list({ q }), [], `${q} is within a word`)
    })

    await t.test('the order by name is that of code points, regardless of case', async (t) => {
      const read: string[] = []
      for (let path = '/api/users?sort=name&limit=5'; path !== '';) {
        const response = await inject('GET', path, { headers })
        read.push(...response.json().map(({ name }: { name: string }) => name.normalize('NFC')))
        path = /<(.*)>/.exec(`${response.headers['link'] ?? ''}`)?.[1] ?? ''
      }
      const expected = [2, 1, 7, 9, 0, 10, 6, 5, 4, 8, 3, 11].map((index) => NAMES[index])
      t.same(read.filter((name) => NAMES.includes(name)), expected)
    })
  })
}

t.test('2.2 a search for each letter that has another case finds it in either', async (t) => {
  const { inject, options } = await createUsher(t)
  const sql = openSql(t, { options })
  const letters: string[] = []
  for (let code = 0xc0; code < 0x20000; code++) {
    const letter = String.fromCodePoint(code)
    const lower = letter.toLowerCase()
    if (/^\p{L}$/u.test(letter) && letter !== lower) letters.push(letter)
  }
  const small = letters.map((letter) => letter.toLowerCase())
  const rows = await sql`select letter, fold_text(letter) = fold_text(lower) as folded
    from unnest(${letters}::text[], ${small}::text[]) of(letter, lower)`
  t.ok(rows.length > 1000)
  t.same(rows.filter(({ folded }) => !folded), [])
  t.equal((await inject('GET', '/api/users?q=%C3%9F%C3%9F')).statusCode, 200)
})

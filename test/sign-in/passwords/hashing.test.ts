import { availableParallelism } from 'node:os'
import { hash } from '@node-rs/argon2'
import t from 'tap'
import { createPasswords } from '../../../plugins/sign-in/passwords/passwords.ts'
import type { UsherOptions } from '../../../schema/options/options.ts'
import { openCore } from '../../helpers/core.ts'
import { createUsher } from '../../helpers/app.ts'
import { uniqueSchema } from '../../helpers/database.ts'
import { createMailer } from '../../helpers/mail.ts'
import { nightly } from '../../helpers/nightly.ts'
import { occupyThreads } from '../../helpers/occupied-threads.ts'
import { openSql } from '../../helpers/sql.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'
import { until } from '../../helpers/until.ts'
import { MAX_CONCURRENT_HASHES } from '../../../schema/options/password-hash.ts'

const usher = await createUsher(t, { passwordHash: undefined })

nightly('4 in a flood of logins, those beyond the limit get 503 with Retry-After, and other requests stay fast', async (t) => {
  const { inject, admin } = usher
  await inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'None', email: 'none@example.com' } })
  // An unknown address and a user without a password cost as much work as a wrong password. If they were rejected
  // without it, the limit would not be reached.
  const emails = ['nobody@example.com', 'none@example.com']
  const flood = Promise.all(Array.from({ length: 260 }, (_, index) =>
    inject('POST', '/api/auth/login', { payload: { email: emails[index % 2], password: 'x' } })))
  let isOver = false
  void flood.then(() => { isOver = true })
  for (let round = 0; round < 20; round++) {
    t.equal((await inject('GET', '/api/protected', { headers: admin.headers })).statusCode, 200)
  }
  t.notOk(isOver, 'the others do not wait for the flood')
  const responses = await flood
  const refused = responses.filter(({ statusCode }) => statusCode === 503)
  t.ok(refused.length > 0 && refused.length <= 60, `${refused.length} refused`)
  t.same(refused[0]!.json(), { error: 'The server is busy, try again', code: 'OVERLOADED' })
  t.equal(refused[0]!.headers['retry-after'], '1')
  t.ok(responses.every(({ statusCode }) => statusCode === 401 || statusCode === 503))
  t.equal((await inject('POST', '/api/auth/login', { payload: admin })).statusCode, 200, 'and then it goes on')
})

nightly('4 a flood of logins keeps no user from logging in, and nobody from signing up', async (t) => {
  const WAITING = 200
  const BEYOND = 20
  const usher = await createUsher(t, { signUp: true, mailer: createMailer().mailer })
  const [atHome, elsewhere] = [await usher.createUser(), await usher.createUser()]
  const HOME = '192.0.2.1'
  const logIn = async (remoteAddress: string, { email, password }: { email: string, password: string }) =>
    (await usher.inject('POST', '/api/auth/login', { remoteAddress, payload: { email, password } })).statusCode
  t.equal(await logIn(HOME, atHome), 200, 'from now on, the network is recognised')

  // No password is hashed until the threads are released.
  async function flood (addressOf: (index: number) => string) {
    const threads = occupyThreads(t)
    let refused = 0
    const answers = Promise.all(Array.from({ length: MAX_CONCURRENT_HASHES + WAITING + BEYOND }, async (_, index) => {
      const status = await logIn(addressOf(index), { email: `nobody-${index}@example.com`, password: 'a wrong one' })
      if (status === 503) refused++
      return status
    }))
    await until('as many as possible wait', () => refused === BEYOND)
    return {
      /** Resolves when others have taken the places of so many, and all have their answers. */
      async giveWay (count: number): Promise<void> {
        await until(`${count} of the flood have given way`, () => refused >= BEYOND + count)
        await threads.release()
        await answers
        t.equal(refused, BEYOND + count)
      },
    }
  }

  t.test('4 from networks that have nothing in common: those with recognised networks log in', async (t) => {
    const { giveWay } = await flood((index) => `198.${18 + (index >> 8)}.${index & 255}.1`)
    const [known, signUp] = [logIn(HOME, atHome), usher.inject('POST', '/api/auth/sign-up', {
      remoteAddress: '203.0.113.1', payload: { name: 'New', email: 'new@example.com', password: 'an unusual phrase' },
    })]
    t.equal(await logIn('203.0.113.1', elsewhere), 503, 'another network is one of many')
    await giveWay(2)
    t.equal(await known, 200)
    t.equal((await signUp).statusCode, 202)
  })

  t.test('4 from one site: everybody else logs in', async (t) => {
    const { giveWay } = await flood((index) => `2001:db8:1:${index.toString(16)}::1`)
    const others = [logIn(HOME, atHome), logIn('203.0.113.1', elsewhere), logIn('2001:db8:2::1', elsewhere)]
    await giveWay(others.length)
    t.same(await Promise.all(others), [200, 200, 200])
  })
})

t.test('4 queued hashing is dropped if the client disconnects or the database becomes unavailable', async (t) => {
  const { core } = await openCore(t)
  const passwords = createPasswords(core, async () => {})
  const { breaker } = core.database
  const client = { destroyed: false }
  const others = Array.from({ length: availableParallelism() }, () => passwords.hash('somebody else'))
  const answers =
    Promise.allSettled([...others.slice(0, 1), passwords.verify('x', null, { client }), passwords.hash('x', { client })])
  client.destroyed = true
  t.match(await answers, [{ value: /^\$argon2id\$/ }, { reason: { code: 'CLIENT_DISCONNECTED' } }, {
    reason: { code: 'CLIENT_DISCONNECTED' },
  }])
  await Promise.all(others)
  breaker.setClosed(false)
  await t.rejects(passwords.hash('x'), { code: 'DATABASE_UNAVAILABLE' })
})

t.test('4 two concurrent logins with a weaker hash both succeed, and the hash is replaced', async (t) => {
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  const weak = await hash(user.password, { memoryCost: 8 * 1024, timeCost: 1, parallelism: 1 })
  await sql`update users set password_hash = ${weak} where id = ${user.id}`
  const answers = await Promise.all([1, 2].map(() => usher.inject('POST', '/api/auth/login', { payload: user })))
  t.same(answers.map(({ statusCode }) => statusCode), [200, 200])
  for (const answer of answers) {
    t.equal((await usher.inject(
      'GET', '/api/protected', { headers: { authorization: `Bearer ${answer.json().token}` } }
    )).statusCode, 200)
  }
  t.match((await sql`select password_hash from users where id = ${user.id}`)[0]!['password_hash'], /\$m=19456,t=2,/)
})

t.test('4 a host chooses the cost of hashes, and one below the recommended is logged', async (t) => {
  const shared = { schema: uniqueSchema(t.name), uploadsDir: temporaryFolder() }
  const start = async (passwordHash: UsherOptions['passwordHash']) => {
    const lines: { msg: string }[] = []
    const logger = { level: 'info', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } }
    const handles = await createUsher(t, { ...shared, passwordHash }, { logger })
    return { ...handles, warnings: lines.filter(({ msg }) => msg.includes('passwordHash')) }
  }
  const weak = await start({ memoryKiB: 64, passes: 1 })
  t.match(weak.warnings, [{ level: 30, msg: /passwordHash is weaker/ }])
  const user = await weak.createUser()
  const sql = openSql(t, weak)
  const kept = async () => (await sql`select password_hash from users where id = ${user.id}`)[0]!['password_hash']
  t.match(await kept(), /\$m=64,t=1,/)

  const strong = await start({ memoryKiB: 7 * 1024, passes: 5 })
  t.same(strong.warnings, [])
  await strong.login(user)
  t.match(await kept(), /\$m=7168,t=5,/, 'hashed again at the next login')
})

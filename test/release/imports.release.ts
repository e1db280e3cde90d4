import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IMPORT_LIMITS, parseHash } from '../../schema/sign-in/passwords/stored-hash.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { withSql } from '../helpers/backup.ts'
import { createDatabase } from '../helpers/database.ts'
import { nodeCommand, startNode } from '../helpers/node.ts'
import { hashers } from '../helpers/password-hashes.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'

const USERS = 100_000
const MIB = 1024 * 1024
const SECRET = 'a secret of many words'
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const server = fileURLToPath(new URL('../../node/server.ts', import.meta.url))
const folder = temporaryFolder()
const database = await createDatabase(t)

// With usual costs. Each hash is that of many users, because making a hundred thousand would take an hour.
const DISTINCT = 10
const families = {
  bcrypt: (password: string) => hashers.bcrypt(password, 10),
  scrypt: (password: string) => hashers.scrypt(password, 14),
  pbkdf2: (password: string) => hashers['pbkdf2-sha256'](password, 600_000),
  argon2: (password: string) => hashers.argon2i(password),
}
const names = Object.keys(families) as (keyof typeof families)[]
const passwordOf = (index: number) => `password ${Math.floor(index / 4) % DISTINCT}`
const hashes = new Map<string, string>()
for (const family of names) {
  for (let index = 0; index < 4 * DISTINCT; index += 4) {
    hashes.set(`${family} ${passwordOf(index)}`, await families[family](passwordOf(index)))
  }
}

async function writeUsers (path: string, count: number): Promise<void> {
  const output = createWriteStream(path)
  for (let index = 0; index < count; index++) {
    // Every thousandth line is broken.
    const user = {
      name: `User ${index}`,
      email: `user${index}@example.com`,
      emailVerified: true,
      createdAt: '2020-01-02T03:04:05Z',
      passwordHash: hashes.get(`${names[index % 4]} ${passwordOf(index)}`),
    }
    const line = index % 1000 === 999 ? `broken ${index}` : JSON.stringify(user)
    if (!output.write(`${line}\n`)) await once(output, 'drain')
  }
  output.end()
  await finished(output)
}

/** Runs a command in a process of its own. `kill` ends it with SIGKILL when a condition holds. */
async function usher (args: string[], url: string, kill?: () => Promise<boolean>) {
  const measure = 'process.on("exit", () => process._rawDebug("maxRSS " + process.resourceUsage().maxRSS))'
  const { command: [program, words], env } = nodeCommand([
    '--import', `data:text/javascript,${encodeURIComponent(measure)}`, server, ...args,
  ])
  const began = performance.now()
  const child = spawn(program, words, { cwd: folder, env: { ...env, DATABASE_URL: url, SECRET } })
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (kill) {
    await until('the command is halfway', kill)
    child.kill('SIGKILL')
  }
  const [stdout, stderr, [code]] = await ended
  const rss = Number(/maxRSS (\d+)/.exec(stderr)?.[1]) * 1024 / MIB
  return { stdout, stderr, code, rss, seconds: (performance.now() - began) / 1000 }
}

const countUsers = (url: string) => withSql(url, async (sql) =>
  Number((await sql`select count(*) from users where email like 'user%'`)[0]!['count']))

const file = join(folder, 'users.ndjson')
const rejected = `${file}.rejected.ndjson`
const VALID = USERS - USERS / 1000

t.test('16.7 100,000 users of four families are imported beside a node, killed on the way and resumed without a duplicate', async (t) => {
  await writeUsers(file, USERS)
  const node = await startNode(t, {
    cwd: folder,
    settings: { DATABASE_URL: database, SECRET, DATA_DIR: join(folder, 'data'), ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password },
  })
  let kills = 0
  for (const share of [0.2, 0.5, 0.8]) {
    await usher(['users', 'import', file], database, async () => await countUsers(database) >= share * VALID)
    kills++
    const count = await countUsers(database)
    t.ok(count < VALID, `killed after ${count} users`)
  }
  const last = await usher(['users', 'import', file, '--json'], database)
  t.equal(last.code, 1, last.stderr)
  const result = JSON.parse(last.stdout)
  t.match(result, { imported: VALID, rejected: USERS - VALID, admins: 0, rejectedFile: rejected })
  t.ok(result.resumed > 0.75 * VALID)
  t.equal(await countUsers(database), VALID)
  const lines = readFileSync(rejected, 'utf8').trim().split('\n').map((line) => JSON.parse(line).line)
  t.strictSame(lines, Array.from({ length: USERS / 1000 }, (_, index) => 1000 * (index + 1)), 'each once, in order')
  t.equal(statSync(rejected).mode & 0o777, 0o600)
  const [entries] = await withSql(database, (sql) => sql`select count(*), count(distinct user_id) as users from audit where action = 'user.import'`)
  t.match(entries, { count: String(VALID), users: String(VALID) })
  t.comment(`killed ${kills} times, the last run resumed after ${result.resumed} users`)

  // The indexes spread over the file and the four families.
  const began = performance.now()
  const sample = Array.from({ length: 40 }, (_, index) => index * 2501).filter((index) => index % 1000 !== 999)
  for (const index of sample) {
    const credentials = { email: `user${index}@example.com`, password: passwordOf(index) }
    await node.login(credentials)
    await node.login(credentials)
  }
  t.comment(`${sample.length} of them logged in twice: ${((performance.now() - began) / 2 / sample.length).toFixed(0)} ms each`)
  const [anew] = await withSql(database, (sql) =>
    sql`select count(*) from users where email like 'user%' and password_hash like '$argon2id$v=19$m=19456,t=2,p=1$%'`)
  t.equal(Number(anew!['count']), sample.length, 'hashed anew')
})

t.test('16.7 import, check and export take constant memory', async (t) => {
  const small = join(folder, 'small.ndjson')
  await writeUsers(small, USERS / 10)
  const figures: Record<string, { seconds: number, rss: number }> = {}
  for (const [path, count] of [[small, USERS / 10], [file, USERS]] as const) {
    rmSync(`${path}.rejected.ndjson`, { force: true })
    const target = await createDatabase(t)
    await usher(['migrate'], target)
    figures[`check ${count}`] = await usher(['users', 'import', path, '--dry-run'], target)
    t.equal(await countUsers(target), 0)
    figures[`import ${count}`] = await usher(['users', 'import', path], target)
    t.equal(await countUsers(target), count - count / 1000)
    figures[`export ${count}`] = await usher(['users', 'export', `${path}.export`], target)
    const other = await createDatabase(t)
    figures[`import of export ${count}`] = await usher(['users', 'import', `${path}.export`], other)
    t.equal(await countUsers(other), count - count / 1000)
    const digest = (url: string) => withSql(url, (sql) => sql`
      select md5(string_agg(md5(row(id, name, email, email_verified, role, disabled, created_at, password_hash)::text), '' order by id))
      from users`)
    t.strictSame(await digest(other), await digest(target), 'what is exported is what is imported')
  }
  for (const [what, { seconds, rss }] of Object.entries(figures)) {
    const count = Number(/\d+/.exec(what)![0])
    t.comment(`${what}: ${seconds.toFixed(1)} s, ${Math.round(count / seconds)} a second, ${Math.round(rss)} MiB`)
    t.ok(rss < 300, `${what}: ${rss} MiB`)
  }
})

interface Times { wall: number[], cpu: number[] }

/**
 * Returns how long failed logins with each address take, and the CPU time of the process for them, in milliseconds.
 * They take turns, so that whatever else the machine does meets all of them.
 */
async function timesOf (
  { inject }: TestUsher, emails: readonly string[], passwordOf: (email: string) => string, rounds: number
): Promise<Times[]> {
  const times = emails.map((): Times => ({ wall: [], cpu: [] }))
  for (let round = 0; round < rounds; round++) {
    for (const [index, email] of emails.entries()) {
      const [began, used] = [performance.now(), process.cpuUsage()]
      await inject('POST', '/api/auth/login', { payload: { email, password: passwordOf(email) } })
      const { user, system } = process.cpuUsage(used)
      times[index]!.wall.push(performance.now() - began)
      times[index]!.cpu.push((user + system) / 1000)
    }
  }
  return times
}

const quantile = (times: readonly number[], share: number) =>
  times.toSorted((one, other) => one - other)[Math.floor(share * (times.length - 1))]!

/** Returns the largest difference of two distributions (Kolmogorov-Smirnov). */
function distance (one: readonly number[], other: readonly number[]): number {
  const below = (times: readonly number[], value: number) => times.filter((time) => time <= value).length / times.length
  return Math.max(...[...one, ...other].map((value) => Math.abs(below(one, value) - below(other, value))))
}

const ROUNDS = 40
// Two samples of the same distribution differ by more in one of ten thousand cases.
const SAME = 2.2 * Math.sqrt(2 / ROUNDS)

t.test('16.7 the time of a failed login reveals neither the family of the hash nor whether there is an account', async (t) => {
  // Lower costs than usual, so that it does not take minutes, but each is far from the others.
  const hashOf = {
    bcrypt: (password: string) => hashers.bcrypt(password, 8),
    scrypt: (password: string) => hashers.scrypt(password, 13),
    pbkdf2: (password: string) => hashers['pbkdf2-sha256'](password, 200_000),
    argon2i: (password: string) => hashers.argon2i(password),
  }
  const names = ['nobody', 'none', 'disabled', 'own', ...Object.keys(hashOf)]
  const emails = names.map((name) => `${name}@example.com`)
  const usher = await createUsher(t, { passwordHash: undefined, secret: SECRET })
  const { inject, options, admin } = usher
  const password = 'what they have chosen'
  // Also the right one of a disabled user fails.
  const given = (email: string) => email === 'disabled@example.com' ? password : 'another one'
  for (const [index, email] of emails.entries()) {
    if (index === 0) continue
    await inject('POST', '/api/users', {
      headers: admin.headers, payload: { name: 'User', email, ...index > 1 && { password } },
    })
  }
  await withSql(options.databaseUrl!, (sql) =>
    sql`update ${sql(`${options.schema}.users`)} set disabled = true where email = 'disabled@example.com'`)
  await timesOf(usher, emails, given, 2)
  const before = await timesOf(usher, emails, given, ROUNDS)
  await withSql(options.databaseUrl!, async (sql) => {
    for (const [family, hash] of Object.entries(hashOf)) {
      const { text, kind } = parseHash(await hash(password), IMPORT_LIMITS)
      await sql`update ${sql(`${options.schema}.users`)} set password_hash = ${text} where email = ${`${family}@example.com`}`
      await sql`insert into ${sql(`${options.schema}.password_kinds`)} (kind) values (${kind})`
    }
  })
  await timesOf(usher, emails, given, 2)
  const after = await timesOf(usher, emails, given, ROUNDS)
  for (const [what, times] of [['before an import', before], ['after it', after]] as const) {
    for (const [index, { wall, cpu }] of times.entries()) {
      const figures = (one: readonly number[]) => [0.1, 0.5, 0.9].map((share) => quantile(one, share).toFixed(1)).join(' ')
      const differs = distance(cpu, times[0]!.cpu)
      t.comment(`${what}, ${names[index]}: CPU ${figures(cpu)} ms, wall ${figures(wall)} ms, distance ${differs.toFixed(2)}`)
      t.ok(differs < SAME, `${what}, ${names[index]}: as an unknown address (${differs.toFixed(2)} < ${SAME.toFixed(2)})`)
    }
  }
})

import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { algorithmOf } from '../../../db/access/signing-keys.ts'
import { failStart, runCommand } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { spawnNode, startNode } from '../../helpers/node.ts'
import { createPooler } from '../../helpers/pooler.ts'
import { openSql } from '../../helpers/sql.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const ADMIN = { ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }

/** Runs a command and resolves to its output. */
async function usher (args: string, settings: Record<string, string>): Promise<string> {
  return (await runCommand(args.split(' '), settings, temporaryFolder(), 'a password from a pipe')).stdout
}

/** Returns the URL of a new database that accepts 30 connections. */
async function createSmallDatabase (t: Test): Promise<string> {
  const url = await createDatabase(t)
  const sql = openSql(t, { options: { databaseUrl: url, schema: 'public' } })
  await sql`alter database ${sql(new URL(url).pathname.slice(1))} connection limit 30`
  return url
}

t.test('8 settings of tokens, sessions, passwords and limits take effect in nodes and commands', { buffered: true }, async (t) => {
  const settings = {
    ...ADMIN,
    DATABASE_URL: await createDatabase(t),
    SIGNING_ALGORITHM: 'ES256',
    TOKEN_ISSUER: 'https://api.example.com',
    ACCESS_TOKEN_SECONDS: '300',
    SESSION_IDLE_SECONDS: '3600',
    SESSION_SECONDS: '7200',
    PASSWORD_HASH_MEMORY_KIB: '7168',
    PASSWORD_HASH_PASSES: '6',
    POOL_SIZE: '3',
    THROTTLE_ACCOUNT_BURST: '2',
    THROTTLE_ACCOUNT_PER_MINUTE: '0.01',
  }
  const node = await startNode(t, { cwd: temporaryFolder(), settings })
  const sql = openSql(t, { options: { databaseUrl: settings.DATABASE_URL, schema: 'usher' } })
  const enter = (password: string) =>
    node.fetch('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: admin.email, password }),
    })

  const response = await enter(admin.password)
  const { token, expiresIn } = await response.json() as { token: string, expiresIn: number }
  t.equal(expiresIn, 300)
  t.equal(decodeProtectedHeader(token).alg, 'ES256')
  const { iss, aud, iat, exp } = decodeJwt(token)
  t.same([iss, aud, exp! - iat!], ['https://api.example.com', 'https://api.example.com', 300])
  t.equal((await node.fetch('/api/protected', { headers: { authorization: `Bearer ${token}` } })).status, 200)
  t.match(response.headers.get('set-cookie'), /Max-Age=(3600|3599);/)

  t.match(
    await usher('admin create --email second@example.com --password-stdin', settings),
    /^Admin second@example\.com was created/
  )
  const hashes = await sql<{ passwordHash: string }[]>`select password_hash as "passwordHash" from users`
  t.equal(hashes.length, 2)
  for (const { passwordHash } of hashes) t.match(passwordHash, /^\$argon2id\$v=19\$m=7168,t=6,p=1\$/)

  t.same([(await enter('wrong')).status, (await enter('wrong')).status], [401, 401])
  t.equal((await enter('wrong')).status, 429, 'the account has two failures')
})

t.test('8 a rotation by a command keeps a key for as long as tokens live, and its algorithm', { buffered: true }, async (t) => {
  const DATABASE_URL = await createDatabase(t)
  const sql = openSql(t, { options: { databaseUrl: DATABASE_URL, schema: 'usher' } })
  const settings = { DATABASE_URL, ACCESS_TOKEN_SECONDS: '3600' }
  await usher('keys rotate', { ...settings, SIGNING_ALGORITHM: 'ES256' })
  for (const time of ['2 hours', '50 minutes']) {
    await sql`update signing_keys set active_at = active_at - ${time}::interval`
    await usher('keys rotate', settings)
  }
  const keys = await sql<{ publicKey: string }[]>`select public_key as "publicKey" from signing_keys`
  t.same(keys.map(({ publicKey }) => algorithmOf(publicKey)), ['ES256', 'ES256', 'ES256'])
})

t.test('8 POOL_SIZE: more connections than the database accepts stop the start, except behind a pooler', { buffered: true }, async (t) => {
  const DATABASE_URL = await createSmallDatabase(t)
  const sentence = (cause: string, connections: number) =>
    `${cause} takes up to ${connections} connections, and the database accepts 30 ` +
      '(max_connections without those that it reserves, or a limit of the role or the database): ' +
      'set a smaller POOL_SIZE or fewer WORKERS, or raise the limit of the database.'

  const refused = spawnNode(t, { cwd: temporaryFolder(), settings: { ...ADMIN, DATABASE_URL, POOL_SIZE: '20' } })
  t.equal(await refused.ended, 1)
  t.equal(refused.stderr, `${sentence('POOL_SIZE 20', 31)}\n`)

  const workers = spawnNode(
    t, { cwd: temporaryFolder(), settings: { ...ADMIN, DATABASE_URL, POOL_SIZE: '9', WORKERS: '2' } }
  )
  t.equal(await workers.ended, 1)
  t.match(workers.stderr, sentence('POOL_SIZE 9', 45))

  const accepted = await startNode(
    t, { cwd: temporaryFolder(), settings: { ...ADMIN, DATABASE_URL, POOL_SIZE: '19' } }
  )
  t.equal((await accepted.fetch('/health/ready')).status, 200)

  t.test('8 WORKERS without POOL_SIZE: the node starts and logs a warning', async (t) => {
    // The other node has connections, and two workers that start at the same time would exceed the limit with them.
    const DATABASE_URL = await createSmallDatabase(t)
    const node = await startNode(t, { cwd: temporaryFolder(), settings: { ...ADMIN, DATABASE_URL, WORKERS: '2' } })
    t.equal(node.stdout.split('\n').filter((line) => line.includes('WORKERS 2 takes up to 48 connections')).length, 1)
  })

  t.test('8 POOL_SIZE: a pooler has limits of its own', async (t) => {
    const DATABASE_URL = await createSmallDatabase(t)
    const pooler = await createPooler(t, DATABASE_URL)
    const node = await startNode(t, {
      cwd: temporaryFolder(),
      settings: { ...ADMIN, DATABASE_URL: pooler.url, NOTIFICATIONS_URL: DATABASE_URL, POOL_SIZE: '20' },
    })
    t.equal((await node.fetch('/health/ready')).status, 200)
  })
})

t.test('8 PASSWORD_HASH_MEMORY_KIB: more than the machine has stops the start', { buffered: true }, async (t) => {
  const settings = { PASSWORD_HASH_MEMORY_KIB: '1048576', PASSWORD_HASH_PASSES: '1', WORKERS: '256' }
  const { code, stderr } = await failStart(settings, temporaryFolder())
  t.equal(code, 1)
  t.match(
    stderr,
    /^PASSWORD_HASH_MEMORY_KIB 1048576 takes \d+ MiB for \d+ hashes at once, more than half of the \d+ MiB of memory: /
  )
})

t.test('14.4 config shows the settings of limits with their defaults', { buffered: true }, async (t) => {
  const shown = await usher('config', { THROTTLE_RESET_PER_MINUTE: '0.5', ACCESS_TOKEN_SECONDS: '300' })
  t.match(shown, /^THROTTLE_RESET_PER_MINUTE +0\.5 +environment$/m)
  t.match(shown, /^ACCESS_TOKEN_SECONDS +300 +environment$/m)
  t.match(shown, /^THROTTLE_ACCOUNT_BURST +10 +default$/m)
  t.match(shown, /^POOL_SIZE +\(not set\) +default$/m)
})

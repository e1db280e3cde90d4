import { mkdir, readdir, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createClient } from '../../../db/driver/client.ts'
import { readSecret } from '../../../node/settings/secret.ts'
import { startEmbedded } from '../../../node/embedded/server.ts'
import { runCommand } from '../../helpers/command.ts'
import { slowNode } from '../../helpers/deadlines.ts'
import { prepareFolder } from '../../helpers/database.ts'
import { spawnNode, startNode, stopNode } from '../../helpers/node.ts'

const SEALED = /^sealed1\./

t.test('4 nodes that start at the same time create one secret in the data folder, which only its owner may read', async (t) => {
  const folder = t.testdir()
  const secrets = await Promise.all(Array.from({ length: 20 }, () => readSecret(folder)))
  t.match(secrets[0], /^[\w-]{43}$/)
  t.equal(new Set(secrets).size, 1)
  t.equal(await readSecret(folder), secrets[0])
  t.same(await readdir(folder), ['secret'])
  t.equal((await stat(join(folder, 'secret'))).mode & 0o777, 0o600)
})

t.test('4 the start fails if the secret can be neither read nor created', async (t) => {
  const folder = t.testdir({ taken: { secret: {} }, dangling: {} })
  await symlink('nowhere', join(folder, 'dangling/secret'))
  await t.rejects(readSecret(join(folder, 'taken')), { message: `DATA_DIR: ${folder}/taken/secret cannot be read.` })
  await t.rejects(
    readSecret(join(folder, 'dangling')), { message: `DATA_DIR: ${folder}/dangling/secret cannot be created.` }
  )
})

t.test('4 with the embedded PostgreSQL, the node and the commands encrypt signing keys with the secret of the data folder', async (t) => {
  const cwd = await prepareFolder(t)
  const DATA_DIR = cwd
  const node = await startNode(
    t, { cwd, settings: { DATA_DIR, ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: 'horse battery staple' } }
  )
  t.notMatch(node.stdout, /"level":40/)
  const { url, stop } = await startEmbedded({ dataDir: DATA_DIR, deadlines: slowNode })
  t.teardown(stop)
  const sql = createClient(url, { max: 1 })
  t.teardown(() => sql.end())
  const keys = async () => (await sql`select private_key from usher.signing_keys`).map(({ private_key: key }) => key)
  t.match(await keys(), [SEALED])
  const { stdout } = await runCommand(['keys', 'rotate'], { DATA_DIR }, cwd)
  t.match(stdout, /^Key \S+ signs in 5 minutes/)
  t.match(await keys(), [SEALED, SEALED])
  const { headers } = await node.login({ email: 'root@example.com', password: 'horse battery staple' })

  const other = await startNode(t, { cwd, settings: { DATA_DIR, PUBLIC_URL: 'http://localhost:3000' } })
  t.equal((await other.fetch('/api/protected', { headers })).status, 200)

  t.test('4 a node warns if SECRET is missing, or TRUST_PROXY with an https PUBLIC_URL', async (t) => {
    const SECRET = await readSecret(DATA_DIR)
    const plain = spawnNode(t, { cwd, settings: { DATABASE_URL: url } })
    t.equal(await plain.ended, 1)
    t.match(
      plain.stdout, /"msg":"SECRET is not set: the private signing keys are stored in the database in plain text"/
    )
    const settings = { DATABASE_URL: url, SECRET, PUBLIC_URL: 'https://api.example.com' }
    const direct = await startNode(t, { cwd, settings })
    t.notMatch(direct.stdout, 'SECRET')
    t.match(direct.stdout, /"level":40.*"msg":"PUBLIC_URL is https and TRUST_PROXY is off: /)
    const proxied = await startNode(t, { cwd, settings: { ...settings, TRUST_PROXY: 'loopback' } })
    for (const { stdout } of [proxied, other]) t.notMatch(stdout, /"level":40/)
  })

  t.test('4 a node does not start without the secret', async (t) => {
    const folder = await prepareFolder(t)
    await mkdir(join(folder, 'secret'))
    const node = spawnNode(t, { cwd: folder, settings: { DATA_DIR: folder } })
    t.equal(await node.ended, 1)
    t.equal(node.stderr, `DATA_DIR: ${folder}/secret cannot be read.\n`)
    t.notOk((await readdir(join(folder, 'postgres/data'))).includes('postmaster.pid'), 'no PostgreSQL is left running')
  })
  t.equal(await stopNode(other), 0)
})

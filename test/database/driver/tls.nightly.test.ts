import { chmodSync, chownSync, copyFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import usher from '../../../app.ts'
import { startEmbedded } from '../../../node/embedded/server.ts'
import { slowNode } from '../../helpers/deadlines.ts'
import { createUsher } from '../../helpers/app.ts'
import { prepareFolder } from '../../helpers/database.ts'
import { openSql } from '../../helpers/sql.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'

// An authority (ca), another one (other), a server with the address 127.0.0.1 and a client with the name usher, both
// signed by the first, for a hundred years, so that the tests need no openssl.
const certificates = join(import.meta.dirname, 'certificates')

/** Starts a PostgreSQL server that accepts TLS connections only. */
async function startServer (t: Test) {
  const dataDir = await prepareFolder(t)
  const data = join(dataDir, 'postgres/data')
  const { uid, gid } = statSync(data)
  for (const [file, mode] of [['server.crt', 0o600], ['server.key', 0o600], ['ca.crt', 0o600]] as const) {
    copyFileSync(join(certificates, file), join(data, file))
    chmodSync(join(data, file), mode)
    chownSync(join(data, file), uid, gid)
  }
  const settings = { fsync: 'off', ssl: 'on', ssl_ca_file: 'ca.crt' }
  const { tcpUrl, stop } = await startEmbedded({ dataDir, tcp: true, settings, deadlines: slowNode })
  t.teardown(stop)
  return new URL(tcpUrl!)
}

t.test('9 sslmode, sslrootcert and certificates of clients mean what they mean for psql', async (t) => {
  const server = await startServer(t)
  const pathOf = (file: string) => encodeURIComponent(join(certificates, file))
  const [ca, other] = [pathOf('ca.crt'), pathOf('other.crt')]
  const { username, password, port } = server
  const urlFor = (host: string, query: string) => `postgres://${username}:${password}@${host}:${port}/usher?${query}`
  let starts = 0
  const start = async (url: string) => {
    const name = `start-${++starts}`
    const databaseUrl = `${url}&application_name=${name}`
    const app = Fastify({ pluginTimeout: 0 })
    t.teardown(() => app.close())
    await app.register(usher, { databaseUrl, uploadsDir: temporaryFolder(), schema: 'tls' })
    await app.ready()
    const sql = openSql(t, { options: { databaseUrl: server.href, schema: 'tls' } }, 1)
    const rows = await sql`select distinct ssl, client_dn from pg_stat_ssl join pg_stat_activity using (pid)
      where application_name = ${name}`
    await Promise.all([app.close(), sql.end()])
    return rows.map((row) => [row.ssl, row.client_dn])
  }

  const databaseUrl = urlFor('127.0.0.1', `sslmode=verify-full&sslrootcert=${ca}`)
  const { admin } = await createUsher(t, { databaseUrl, schema: 'tls' })
  t.ok(admin.token, 'a login over TLS')
  const encrypted = [[true, null]]
  await t.test('a server is used if the certificate is what the URL asks for', async (t) => {
    const client = `sslcert=${pathOf('client.crt')}&sslkey=${pathOf('client.key')}`
    for (const [host, query] of [
      ['127.0.0.1', `sslmode=verify-full&sslrootcert=${ca}`],
      ['127.0.0.1:1,127.0.0.1', `sslmode=verify-full&sslrootcert=${ca}`],
      ['localhost', `sslmode=verify-ca&sslrootcert=${ca}`],
      ['localhost', 'sslmode=require'],
      ['127.0.0.1', 'sslmode=prefer'],
      ['localhost', `sslmode=require&channel_binding=require&sslrootcert=${ca}`],
    ] as const) t.strictSame(await start(urlFor(host, query)), encrypted, `${host} ${query}`)
    const shown = await start(urlFor('localhost', `sslmode=require&${client}`))
    t.strictSame(shown, [[true, '/CN=usher']], 'with a certificate')
    t.strictSame(await start(urlFor('127.0.0.1', 'sslmode=disable')), [[false, null]])
  })

  await t.test('a server is not used otherwise', async (t) => {
    for (const [host, query] of [
      ['localhost', `sslmode=verify-full&sslrootcert=${ca}`],
      ['127.0.0.1', `sslmode=verify-full&sslrootcert=${other}`],
      ['127.0.0.1', `sslmode=require&sslrootcert=${other}`],
      ['127.0.0.1', 'sslmode=verify-full'],
      ['127.0.0.1', 'sslmode=require&channel_binding=require'],
    ] as const) {
      await t.rejects(start(urlFor(host, query)), {
        message: /^usher: the certificate of the database cannot be verified \(.*\). Name the certificate/,
      }, `${host} ${query}`)
    }
    await t.rejects(start(urlFor('localhost', 'sslmode=verify-full&sslrootcert=/nowhere.crt')), {
      message: 'usher: the file /nowhere.crt of sslrootcert in the URL of the database cannot be read (ENOENT)',
    })
  })
})

import Fastify from 'fastify'
import postgres from 'postgres'
import t from 'tap'
import usher, { type UsherOptions } from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const admin = { email: 'admin@example.com', password: 'horse battery staple' }
const databaseUrl = 'postgres://somebody:secret@127.0.0.1:1/none'

t.test('9 with the option sql, Usher uses the client of the host and does not close it', async (t) => {
  const sql = postgres(await testDatabaseUrl(), { max: 2 })
  t.teardown(() => sql.end())
  const options: UsherOptions = { sql, schema: uniqueSchema(t.name), uploadsDir: temporaryFolder(), admin }
  const app = Fastify({ pluginTimeout: 0 })
  await app.register(usher, options)
  await app.ready()
  const { inject, createUser } = await withUsers(app, options)
  const users = await Promise.all(Array.from({ length: 5 }, () => createUser()))
  await Promise.all(users.map(({ id, headers }) => inject('DELETE', `/api/users/${id}`, { headers })))
  t.equal((await inject('GET', '/api/users')).json().length, 1)
  await app.close()
  t.strictSame([...await sql`select 1 as one`], [{ one: 1 }])
  const { schema } = options
  t.strictSame([...await sql`select count(*)::int from ${sql(schema!)}.users`], [{ count: 1 }])
})

const origins = 'origins must be origins such as https://app.example.com or capacitor://localhost, ' +
  'without wildcards, or *'
const publicUrl =
  'publicUrl must be an address such as https://api.example.com, ' +
  'or https://example.com/accounts if a proxy removes the path'

t.test('9 an invalid option makes the start fail with a sentence that names it', async (t) => {
  const sql = postgres(databaseUrl)
  const needed = { databaseUrl }
  const refused: [options: object, message: string][] = [
    [{}, 'databaseUrl or sql is required'],
    [{ databaseUrl: undefined }, 'databaseUrl or sql is required'],
    [{ databaseUrl: '' }, 'databaseUrl or sql is required'],
    [{ databaseUrl, sql }, 'databaseUrl and sql exclude each other: pass only one of them'],
    [{ databaseUrl: 5432 }, 'databaseUrl must be a URL such as postgres://user:password@host:5432/database'],
    [
      { databaseUrl: 'mysql://user:secret@host/db' },
      'databaseUrl must be a URL such as postgres://user:password@host:5432/database',
    ],
    [
      { databaseUrl: 'postgres://user:secret@ho st:x/db' },
      'databaseUrl must be a URL such as postgres://user:password@host:5432/database',
    ],
    ...['p@ss/word', '12/ab', 'pa#ss', 'pa?ss', 'pa%ss'].map((password): [object, string] => [
      { databaseUrl: `postgres://user:${password}@host/db` },
      'databaseUrl must be a URL such as postgres://user:password@host:5432/database. ' +
        'Characters such as / # ? % @ in the password must be percent-encoded (/ is %2F).',
    ]),
    [
      { ...needed, notificationsUrl: 'mysql://user:secret@host/db' },
      'notificationsUrl must be a URL such as postgres://user:password@host:5432/database',
    ],
    [{ ...needed, replicaUrls: 'postgres://h/d' }, 'replicaUrls must be an array of URLs'],
    [
      { ...needed, replicaUrls: ['mysql://user:secret@host/db'] },
      'each of replicaUrls must be a URL such as postgres://user:password@host:5432/database',
    ],
    [
      { ...needed, replicaUrls: ['postgres://user:secret@one,two/db'] },
      'each of replicaUrls must have one host: give each standby a URL of its own',
    ],
    [{ ...needed, replicaUrls: ['postgres://h/d', 'postgres://h/d'] }, 'replicaUrls names a standby twice'],
    [
      { ...needed, replicaUrls: Array.from({ length: 17 }, (_, index) => `postgres://h${index}/d`) },
      'replicaUrls can name 16 standbys at most',
    ],
    [{ sql: 'postgres://' }, 'sql must be a client created by postgres.js'],
    [{ sql: () => {} }, 'sql must be a client created by postgres.js'],
    [{ ...needed, databaseURL: databaseUrl }, 'there is no option databaseURL'],
    [{ ...needed, onFristAdmin: () => {} }, 'there is no option onFristAdmin'],
    [{ ...needed, onFirstAdmin: true }, 'onFirstAdmin must be a function'],
    [{ ...needed, onNoAdmin: true }, 'onNoAdmin must be a function'],
    [{ ...needed, onAdminIgnored: true }, 'onAdminIgnored must be a function'],
    [{ ...needed, signUp: true }, 'signUp needs the option mailer, because users are created by a link in a mail'],
    [{ ...needed, signUp: 'true' }, 'signUp must be a boolean'],
    [{ ...needed, prefix: 5 }, 'prefix must be a path such as /accounts'],
    [{ ...needed, prefix: null }, 'prefix must be a path such as /accounts'],
    [{ ...needed, schema: 'No-Schema' }, 'schema must match pattern "^[a-z_][a-z0-9_]{0,39}$"'],
    [{ ...needed, schema: () => {} }, 'schema must be a string'],
    [{ ...needed, poolSize: '10' }, 'poolSize must be an integer'],
    [{ ...needed, poolSize: 1 }, 'poolSize must be between 2 and 1000'],
    [{ ...needed, publicUrl: 'example.com' }, publicUrl],
    [{ ...needed, origins: ['https://*.example.com'] }, origins],
    [{ ...needed, origins: ['null'] }, origins],
    [{ ...needed, publicUrl: 'https://example.com/a?b' }, publicUrl],
    [{ ...needed, publicUrl: 'https://example.com/a;b' }, publicUrl],
    [{ ...needed, publicUrl: 'https://example.com/a/../b' }, publicUrl],
    [{ ...needed, decoratorName: '' }, 'decoratorName must not be blank'],
    [{ ...needed, decoratorName: 'register' }, 'decoratorName register is taken in this app: choose another name'],
    [{ ...needed, origins: 'https://a.example' }, 'origins must be an array'],
    [{ ...needed, admin: 'me' }, 'admin must be an object'],
    [{ ...needed, admin: null }, 'admin must be an object'],
    [{ ...needed, admin: { email: 'me@example.com' } }, 'admin.password is required'],
    [{ ...needed, admin: { email: 'me@example.com', password: 'password' } }, 'admin.password is too common'],
    [{ ...needed, emitter: null }, 'emitter must be an mqemitter'],
    [{ ...needed, emitter: 'redis' }, 'emitter must be an mqemitter'],
    [{ ...needed, emitter: { on () {}, emit () {} } }, 'emitter must be an mqemitter'],
    [{ ...needed, policy: { 'users:creat': () => true } }, 'policy has no action users:creat'],
    [{ ...needed, policy: { 'users:create': true } }, 'policy must have a function for users:create'],
  ]
  for (const [options, message] of refused) {
    await t.rejects(async () => Fastify().register(usher, options), { message: `usher: ${message}` }, message)
  }
})

t.test('9 Usher does not change the options that the host passes', async (t) => {
  const options: UsherOptions = {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema(t.name),
    uploadsDir: temporaryFolder(),
    admin: Object.freeze({ ...admin, email: ' admin@example.com ' }),
    policy: Object.freeze({ 'users:create': () => true }),
    publicUrl: undefined,
    onFirstAdmin: undefined,
    logLevel: 'silent',
  }
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(usher, Object.freeze(options))
  const { createUser, inject } = await withUsers(app, { ...options, admin })
  const { headers } = await createUser()
  t.equal(
    (await inject('POST', '/api/users', { headers, payload: { name: 'Ada', email: 'ada@example.com' } })).statusCode,
    201,
    'a rule of the host'
  )
})

t.test('9 if the database cannot be reached, the start fails with the cause', async () => {
  const app = Fastify({ pluginTimeout: 0 })
  await t.rejects(
    async () => app.register(usher, { databaseUrl }), { code: 'DATABASE_UNAVAILABLE', cause: { code: 'ECONNREFUSED' } }
  )
  await app.close()
})

import Fastify from 'fastify'
import t from 'tap'
import usher from '../../app.ts'
import { createTestUsher } from '../../testing/index.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const databaseUrl = await testDatabaseUrl()

t.test('12.9 a test has an app with a schema of its own, which is dropped when it is closed', async (t) => {
  const [one, two] = await Promise.all([createTestUsher({ databaseUrl }), createTestUsher({ databaseUrl })])
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const sql = openSql(t, { options: { databaseUrl, schema: 'public' } })
  const isThere = async (schema: string) => (await sql`select from pg_namespace where nspname = ${schema}`).length === 1
  const ada = await one.usher.users.create({ name: 'Ada', email: 'ada@example.com' })
  t.equal((await one.app.inject(`/api/users/${ada.id}`)).statusCode, 200)
  t.equal((await two.app.inject(`/api/users/${ada.id}`)).statusCode, 404)
  t.not(one.options.uploadsDir, two.options.uploadsDir)

  await Promise.all([one.close(), one.close()])
  t.notOk(await isThere(one.options.schema))
  t.ok(await isThere(two.options.schema))
})

nightly('12.9 tokenFor logs in a user who has no password', async (t) => {
  const { app, usher, tokenFor, close } = await createTestUsher({ databaseUrl })
  t.teardown(close)
  const ada = await usher.users.create({ name: 'Ada', email: 'ada@example.com' })
  for (const user of [ada, ada.id]) {
    const { statusCode, json } =
      await app.inject({ url: '/api/protected', headers: { authorization: `Bearer ${await tokenFor(user)}` } })
    t.equal(statusCode, 200)
    t.equal(json().user.id, ada.id)
  }
  await t.rejects(tokenFor('nobody'), { code: 'USER_NOT_FOUND' })
})

nightly("12.9 the app of a test is the host's, with Usher mounted as the host mounts it", async (t) => {
  const { app, usher: mounted, close } = await createTestUsher({
    databaseUrl,
    prefix: '/accounts',
    decoratorName: 'people',
    async build (options) {
      const app = Fastify({ pluginTimeout: 0 })
      app.get('/', async () => 'mine')
      await app.register(usher, options)
      return app
    },
  })
  t.teardown(close)
  t.equal((await app.inject('/')).body, 'mine')
  t.equal((await app.inject('/accounts/api/users')).statusCode, 200)
  t.equal(app.getDecorator('people'), mounted)
})

t.test('12.9 an app without Usher, and options that a test cannot have, are rejected', async (t) => {
  await t.rejects(createTestUsher({ databaseUrl, build: () => Fastify({ pluginTimeout: 0 }) }), {
    message: /^usher: build must return an app in which Usher is mounted/,
  })
  for (const name of ['schema', 'sql']) {
    await t.rejects(createTestUsher({ databaseUrl, [name]: 'mine' }), {
      message: `usher: createTestUsher has no option ${name}: each test has a schema of its own`,
    })
  }
})

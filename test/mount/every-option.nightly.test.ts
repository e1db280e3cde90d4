import { Type } from '@sinclair/typebox'
import Fastify, { type RegisterOptions } from 'fastify'
import mqemitter from 'mqemitter'
import t from 'tap'
import usher, { type UsherOptions } from '../../app.ts'
import type { Mail } from '../../schema/options/options.ts'
import { withUsers } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { startFakeS3 } from '../helpers/fake-s3.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'

// `test/release/package.release.ts` runs this with the package, in which files or modules may be missing.
t.test('9 a host that sets every option starts, and each part responds', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const mails: Mail[] = []
  const options = {
    decoratorName: 'accounts',
    actorName: 'account',
    schema: uniqueSchema(t.name),
    poolSize: 3,
    slowStatementMs: 60_000,
    publicUrl: 'https://accounts.example.com',
    origins: ['https://app.example.com'],
    redirectTo: '/elsewhere',
    admin: { email: 'root@example.com', password: 'horse battery staple' },
    issuer: 'https://accounts.example.com',
    accessTokenSeconds: 600,
    stepUpSeconds: 300,
    secondFactor: 'optional',
    sessionSeconds: 86_400,
    sessionIdleSeconds: 3600,
    signingKeySeconds: 86_400,
    signingAlgorithm: 'ES256',
    secret: 'a secret with many characters',
    formerSecret: 'another secret of the node',
    passwordTokenSeconds: 900,
    passwordUrl: 'https://app.example.com/password',
    passwordHash: { memoryKiB: 8, passes: 1 },
    signUp: true,
    loginMail: true,
    pages: { productName: 'Bookmarks', color: '#00ff00', language: 'en-GB', texts: { logIn: 'Welcome' } },
    auditSeconds: 86_400,
    throttle: { account: { burst: 20 } },
    live: { connections: 100 },
    pingSeconds: 20,
    bodyLimit: 65_536,
    bodySeconds: 20,
    graphql: {
      maxCost: 1000,
      typeDefs: 'extend type Query { greeting: String! }',
      resolvers: { Query: { greeting: () => 'Hello' } },
    },
    without: [],
    deadlines: slow,
    hookSeconds: 60,
    uploadsDir: temporaryFolder(),
    scan: { seconds: 60 },
    breachedPasswords: { url: 'http://127.0.0.1:9/range/' },
    s3: (await startFakeS3(t)).options,
    uploadsTo: 's3',
    uploadMaxBytes: 1000,
    uploadQuotaBytes: 10_000,
    uploadQuotaFiles: 10,
    unfinishedUploadSeconds: 3600,
    unfinishedUploadsPerUser: 5,
    unfinishedUploadsPerNetwork: 10,
    unfinishedUploads: 100,
    postsPerHour: 100,
    uploadIdleSeconds: 20,
    uploadMinBytesPerSecond: 1,
    databaseUrl,
    notificationsUrl: databaseUrl,
    replicaUrls: [],
    emitter: mqemitter(),
    organizations: true,
    policy: { 'users:create': () => true },
    roles: { moderator: ['posts:delete'] },
    hooks: { beforeUserCreate: (user) => ({ ...user, name: `${user.name} Lovelace` }) },
    userFields: Type.Object({ bio: Type.Optional(Type.String({ 'x-read': 'anyone', 'x-write': 'owner' })) }),
    claims: () => ({ plan: 'pro' }),
    mailer: (mail) => { mails.push(mail) },
    mailTexts: { it: { invitation: { button: 'Imposta la password' } } },
    mailTemplates: (name) => name === 'invitation' ? { subject: 'Come in', text: 'Please' } : undefined,
    providers: { github: { clientId: 'bookmarks', clientSecret: 'a secret of GitHub' } },
    webhooks: [{
      url: 'https://hooks.example.com',
      secret: `whsec_${Buffer.alloc(32).toString('base64')}`,
      events: ['post.deleted'],
    }],
    onFirstAdmin: () => {},
    onNoAdmin: () => {},
    console: true,
    shownSettings: () => [],
    onAdminIgnored: () => {},
    onRoleInUse: () => {},
  } satisfies Required<Omit<UsherOptions, keyof RegisterOptions | 'sql'>>
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(usher, options)
  app.get(
    '/mine', { onRequest: (app as never as { accounts: typeof app.usher }).accounts.authenticate }, async (request) =>
      (request as never as { account: typeof request.actor }).account
  )

  const host = await withUsers(app, options)
  const { inject, admin: { headers } } = host
  const created = await inject(
    'POST', '/api/users', { headers, payload: { name: 'Ada', email: 'ada@example.com', bio: 'Counts' } }
  )
  t.match(created.json(), { name: 'Ada Lovelace', bio: 'Counts' })
  t.match((await app.inject({ url: '/mine', headers })).json(), { role: 'admin', claims: { plan: 'pro' } })
  const uploaded = (await post(host, [filePart('Hello'), fieldPart('description', 'Text')])).json()
  t.match(uploaded, { fileUrl: /^https:\/\/accounts\.example\.com\/api\/uploads\//, mediaType: 'text/plain' })
  t.equal((await inject('GET', `/api/uploads/${uploaded.id}`)).body, 'Hello')
  const query = async (operation: object) => (await inject('POST', '/graphql', { headers, payload: operation })).json()
  t.strictSame(await query({ query: '{ greeting users { nodes { bio } } }' }), {
    data: { greeting: 'Hello', users: { nodes: [{ bio: 'Counts' }, { bio: null }] } },
  })
  t.match(await query({ mutation: 'mutation { createPost(input: { title: "First", content: "" }) { title } }' }), {
    data: { createPost: { title: 'First' } },
  })
  t.equal((await inject('POST', `/api/users/${created.json().id}/invitation`, { headers })).statusCode, 202)
  await until('the invitation is sent', async () => mails.some(({ subject }) => subject === 'Come in'))
  t.equal((await inject('GET', '/api/redirect')).headers.location, '/elsewhere')
  for (const [path, content] of Object.entries({
    '/login': 'Welcome', '/sign-up': 'Bookmarks', '/docs/': 'html', '/docs/json': '"bio"', '/graphql': 'graphiql',
  })) {
    const { statusCode, body } = await inject(
      'GET', path, { headers: { accept: path === '/docs/json' ? 'application/json' : 'text/html' } }
    )
    t.strictSame([statusCode, body.includes(content)], [200, true], path)
  }
})

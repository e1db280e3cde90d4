import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildSchema } from 'graphql'
import t from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'

type Part = NonNullable<UsherOptions['without']>[number]

// For each part: a path that only it has, and modules that only it loads.
const parts: Record<Part, { path: string, modules: RegExp }> = {
  uploads: { path: '/api/uploads/0199d9a4-0000-7000-8000-000000000000', modules: /plugins\/uploads|routes\/uploads|\/@fastify\/multipart\/|\/file-type\// },
  posts: { path: '', modules: /plugins\/posts\/(posts|events)\./ },
  graphql: { path: '/graphql', modules: /routes\/graphql|\/(mercurius|graphql|graphql-jit|ws)\/|plugins\/posts\/events\./ },
  docs: { path: '/docs', modules: /routes\/docs\./ },
  pages: { path: '/login', modules: /routes\/account-pages/ },
}
const names = Object.keys(parts) as Part[]

for (const without of [...names.map((name) => [name]), names]) {
  t.test(`12.10 without ${without.join(', ')}`, async (t) => {
    const { inject, admin } = await createUsher(t, { without })
    for (const [name, { path }] of Object.entries(parts)) {
      if (!path) continue
      const { statusCode, body } = await inject('GET', path, { headers: { accept: 'text/html, application/json' } })
      const isThere = statusCode !== 404 || body.includes('UPLOAD_NOT_FOUND')
      t.equal(isThere, !without.includes(name as Part), `${path} ${statusCode}`)
    }
    t.equal((await inject('POST', '/api/uploads', { headers: admin.headers })).statusCode, without.includes('uploads') ? 404 : 415)

    // What remains works.
    const { id } = (await inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'Ada', email: 'ada@example.com' } })).json()
    t.equal((await inject('GET', `/api/users/${id}`)).statusCode, 200)
    t.equal((await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })).statusCode, 204)
    if (!without.includes('docs')) {
      const { paths, info, tags } = (await inject('GET', '/docs/json')).json<{ paths: object, info: { description: string }, tags: { name: string }[] }>()
      t.equal('/api/uploads' in paths, !without.includes('uploads'))
      t.equal(tags.some(({ name }) => name === 'uploads'), !without.includes('uploads'))
      t.equal(info.description.includes('GraphQL'), !without.includes('graphql'))
      t.equal((await inject('GET', '/docs/schema.graphql')).statusCode, without.includes('graphql') ? 404 : 200)
    }
  })

  t.test(`12.10 without ${without.join(', ')}, its modules are not loaded`, async (t) => {
    const { options } = await createUsher(t, { without })
    const script = join(import.meta.dirname, 'fixtures/loaded-modules.ts')
    const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(options)])
    const loaded: string[] = JSON.parse(stdout)
    t.ok(loaded.some((url) => url.endsWith('/app.ts')))
    for (const name of without) t.strictSame(loaded.filter((url) => parts[name].modules.test(url)), [], name)
    t.notOk(loaded.some((url) => url.endsWith('/outbox/webhooks.ts')), 'that of webhooks is not loaded either, because there are none')
  })
}

t.test('12.10 without posts, the GraphQL schema has users only', async (t) => {
  const { inject, admin } = await createUsher(t, { without: ['posts'] })
  const schema = buildSchema((await inject('GET', '/docs/schema.graphql')).body)
  t.strictSame(Object.keys(schema.getQueryType()!.getFields()), ['user', 'users', 'me'])
  t.notOk(schema.getType('Post') ?? schema.getMutationType() ?? schema.getSubscriptionType())
  const answer = await inject('POST', '/graphql', { headers: admin.headers, payload: { query: '{ me { email } users { nodes { role } } }' } })
  t.strictSame(answer.json(), { data: { me: { email: admin.email }, users: { nodes: [{ role: 'admin' }] } } })
  const rejected = await inject('POST', '/graphql', { headers: admin.headers, payload: { query: 'mutation { deletePost(id: "1") }' } })
  t.match(rejected.json(), { errors: [{ extensions: { code: /\w/ } }] })
})

t.test('12.10 an unknown part is rejected', async (t) => {
  for (const without of [['upload'], 'uploads', [1]]) {
    await t.rejects(createUsher(t, { without: without as never }), { message: /^usher: without(\.0)? must be / })
  }
})

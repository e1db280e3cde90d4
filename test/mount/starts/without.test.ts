import { buildSchema } from 'graphql'
import t from 'tap'
import type { UsherOptions } from '../../../app.ts'
import { createUsher } from '../../helpers/app.ts'
import { sample } from '../../helpers/nightly.ts'

type Part = NonNullable<UsherOptions['without']>[number]

// For each part: a path that only it has.
const paths: Record<Part, string> = {
  uploads: '/api/uploads/0199d9a4-0000-7000-8000-000000000000',
  posts: '',
  graphql: '/graphql',
  docs: '/docs',
  pages: '/login',
}
const names = Object.keys(paths) as Part[]

for (const without of sample([names, ...names.map((name) => [name])], 2)) {
  t.test(`12.10 without ${without.join(', ')}`, async (t) => {
    const { inject, admin } = await createUsher(t, { without })
    for (const [name, path] of Object.entries(paths)) {
      if (!path) continue
      const { statusCode, body } = await inject('GET', path, { headers: { accept: 'text/html, application/json' } })
      const isThere = statusCode !== 404 || body.includes('UPLOAD_NOT_FOUND')
      t.equal(isThere, !without.includes(name as Part), `${path} ${statusCode}`)
    }
    t.equal(
      (await inject('POST', '/api/uploads', { headers: admin.headers })).statusCode,
      without.includes('uploads') ? 404 : 415
    )

    // What remains works.
    const { id } = (await inject(
      'POST', '/api/users', { headers: admin.headers, payload: { name: 'Ada', email: 'ada@example.com' } }
    )).json()
    t.equal((await inject('GET', `/api/users/${id}`)).statusCode, 200)
    t.equal((await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })).statusCode, 204)
    if (!without.includes('docs')) {
      const { paths, info, tags } = (await inject('GET', '/docs/json')).json<{
        paths: object, info: { description: string }, tags: { name: string }[]
      }>()
      t.equal('/api/uploads' in paths, !without.includes('uploads'))
      t.equal(tags.some(({ name }) => name === 'uploads'), !without.includes('uploads'))
      t.equal(info.description.includes('GraphQL'), !without.includes('graphql'))
      t.equal((await inject('GET', '/docs/schema.graphql')).statusCode, without.includes('graphql') ? 404 : 200)
    }
  })
}

t.test('12.10 without posts and uploads, the GraphQL schema has users only', async (t) => {
  const { inject, admin } = await createUsher(t, { without: ['posts', 'uploads'] })
  const schema = buildSchema((await inject('GET', '/docs/schema.graphql')).body)
  t.strictSame(Object.keys(schema.getQueryType()!.getFields()), ['user', 'users', 'me'])
  t.notOk(schema.getType('Post') ?? schema.getMutationType() ?? schema.getSubscriptionType())
  const answer = await inject(
    'POST', '/graphql', { headers: admin.headers, payload: { query: '{ me { email } users { nodes { role } } }' } }
  )
  t.strictSame(answer.json(), { data: { me: { email: admin.email }, users: { nodes: [{ role: 'admin' }] } } })
  const rejected = await inject(
    'POST', '/graphql', { headers: admin.headers, payload: { query: 'mutation { deletePost(id: "1") }' } }
  )
  t.match(rejected.json(), { errors: [{ extensions: { code: /\w/ } }] })
})

t.test('12.10 without posts or without uploads, the GraphQL schema has the rest', async (t) => {
  const schemaWithout = async (part: Part) => {
    const { inject } = await createUsher(t, { without: [part] })
    return buildSchema((await inject('GET', '/docs/schema.graphql')).body)
  }
  const ofUploads = await schemaWithout('posts')
  t.strictSame(Object.keys(ofUploads.getQueryType()!.getFields()), ['user', 'users', 'upload', 'me'])
  t.strictSame(Object.keys(ofUploads.getMutationType()!.getFields()), ['updateUpload', 'deleteUpload'])
  t.notOk(ofUploads.getType('Post') ?? ofUploads.getSubscriptionType())
  const ofPosts = await schemaWithout('uploads')
  t.strictSame(Object.keys(ofPosts.getMutationType()!.getFields()), ['createPost', 'updatePost', 'deletePost'])
  for (const name of ['Upload', 'UploadConnection', 'UpdateUploadInput', 'Visibility']) t.notOk(ofPosts.getType(name))
})

t.test('12.10 an unknown part is rejected', async (t) => {
  for (const without of [['upload'], 'uploads', [1]]) {
    await t.rejects(createUsher(t, { without: without as never }), { message: /^usher: without(\.0)? must be / })
  }
})

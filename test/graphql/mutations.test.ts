import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { createPost, openSocket, post, protocols } from '../helpers/graphql.ts'
import { tagOfRow } from '../helpers/row-tags.ts'
import { openSql } from '../helpers/sql.ts'

const UNKNOWN = '018f0000-0000-7000-8000-000000000000'
const CREATE = 'mutation ($input: CreatePostInput!) { createPost(input: $input) { id title content author { id } } }'

t.test('mutations', async (t) => {
  const usher = await sharedUsher()
  const { admin, createUser, inject } = usher
  const sql = openSql(t, usher)
  const [owner, other] = [await createUser(), await createUser()]

  const create = (input: object, user: LoggedIn = owner) => post(usher, { query: CREATE, variables: { input } }, user)
  const posts = async () => (await sql`select title, content from posts order by id`).map((row) => ({ ...row }))

  t.test('7.4 a mutation without a token gets errors, and nothing is written (given)', async (t) => {
    const id = await createPost(usher, owner, 'Before')
    const before = await posts()
    const field = 'createPost(input: { title: "A", content: "B" }) { id }'
    for (const body of [
      { query: `mutation { ${field} }` },
      { mutation: `mutation { ${field} }` },
      { mutation: `{ ${field} }` },
      { mutation: `mutation Named { ${field} }`, operationName: 'Named' },
      { query: `query A { me { id } } mutation B { ${field} }`, operationName: 'B' },
      { query: `mutation { a: ${field} b: ${field} }` },
      { query: 'mutation { ...F } fragment F on Mutation { createPost(input: { title: "A", content: "B" }) { id } }' },
      { query: CREATE, variables: { input: { title: 'A', content: 'B', authorId: owner.id } } },
      { query: `mutation { updatePost(id: "${id}", input: { title: "C" }) { id } }` },
      { query: `mutation { deletePost(id: "${id}") }` },
    ]) {
      for (let round = 0; round < 3; round++) {
        const { data, errors } = await post(usher, body)
        t.notOk(data, JSON.stringify(body))
        t.match(
          errors,
          [{ message: 'A bearer token is required', extensions: { code: 'UNAUTHENTICATED' } }],
          JSON.stringify(body)
        )
      }
    }
    for (const protocol of protocols) {
      const socket = await (await openSocket(t, usher, { protocol })).init()
      for (const query of [`mutation { ${field} }`, `mutation { deletePost(id: "${id}") }`]) {
        t.match(await socket.run(query), {
          data: null, errors: [{ message: 'A bearer token is required', extensions: { code: 'UNAUTHENTICATED' } }],
        })
      }
      t.match(await socket.run(`query A { me { id } } mutation B { ${field} }`, { operationName: 'B' }), {
        data: null, errors: [{ message: 'A bearer token is required' }],
      })
    }
    t.same(await posts(), before)
  })

  t.test('7.4 a cookie does not replace a token', async (t) => {
    const response = await inject('POST', '/graphql', {
      headers: { cookie: owner.cookie },
      payload: { mutation: '{ createPost(input: { title: "A", content: "" }) { id } }' },
    })
    t.equal(response.statusCode, 200)
    t.match(response.json(), { data: null, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] })
  })

  t.test('7.4 an invalid token is an error for queries too', async (t) => {
    const ended = await createUser()
    await inject('POST', '/api/auth/logout', { headers: ended.headers })
    const deleted = await createUser()
    await inject('DELETE', `/api/users/${deleted.id}`, { headers: admin.headers })
    const before = await posts()
    for (const authorization of [
      'Bearer x', 'Bearer a.b.c', 'Bearer', `Bearer ${owner.token} x`, `Bearer ${owner.token.slice(0, -3)}AAA`,
      ended.headers.authorization, deleted.headers.authorization,
    ]) {
      for (const query of [
        '{ users { nodes { id } } }',
        '{ __typename }',
        'mutation { createPost(input: { title: "A", content: "" }) { id } }',
      ]) {
        const response = await inject('POST', '/graphql', { headers: { authorization }, payload: { query } })
        t.equal(response.statusCode, 200)
        t.match(response.json(), {
          data: null,
          errors: [
            { message: 'The bearer token is invalid, expired or revoked', extensions: { code: 'INVALID_TOKEN' } },
          ],
        })
      }
    }
    const basic = await inject(
      'POST', '/graphql', { headers: { authorization: 'Basic eDp5' }, payload: { query: '{ __typename }' } }
    )
    t.match(basic.json(), { data: null, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] })
    t.same(await posts(), before)
  })

  t.test('7.6 createPost with an empty or blank title gets errors (given)', async (t) => {
    const before = await posts()
    for (const title of ['', ' ', '\t\n', '\u00a0\u3000']) {
      for (let round = 0; round < 3; round++) {
        const { data, errors } = await create({ title, content: 'Words' })
        t.notOk(data)
        t.match(errors![0]!.message, /^title must not (be blank|contain control characters)$/)
        t.equal(errors![0]!.extensions.code, 'INVALID_INPUT')
      }
    }
    t.same(await posts(), before)
  })

  t.test('7.6 createPost rejects text that is too long or no string, and reports all problems at once', async (t) => {
    const before = await posts()
    for (const [input, errors] of [
      [{ title: 'x'.repeat(201), content: '' }, ['title must be at most 200 characters']],
      [{ title: '😀'.repeat(201), content: '' }, ['title must be at most 200 characters']],
      [{ title: 'a\nb', content: '' }, ['title must not contain control characters']],
      [{ title: 'a\u0000', content: 'a\u0000' }, [
        'title must not contain control characters', 'content must not contain control characters',
      ]],
      [{ title: 'A', content: '\u0007' }, ['content must not contain control characters']],
      [{ title: '\ud800', content: '\udfff' }, [
        'title must not contain control characters', 'content must not contain control characters',
      ]],
      [{ title: '', content: 'é'.repeat(32769) }, ['title must not be blank', 'content must be at most 65536 bytes']],
    ] as const) {
      const answer = await create(input)
      t.equal(answer.data, null)
      t.same(answer.errors![0]!.extensions, { code: 'INVALID_INPUT', errors })
      t.equal(answer.errors![0]!.message, errors.join('; '))
    }
    for (const input of [
      {}, { title: 'A' }, { title: null, content: '' }, { title: 1, content: '' },
      { title: 'A', content: '', id: UNKNOWN },
    ]) {
      t.match((await create(input)).errors![0], {
        message: /^Variable "\$input" got invalid value/, extensions: { code: 'GRAPHQL_INVALID' },
      })
    }
    t.same(await posts(), before)
  })

  t.test('7.6 createPost stores text unchanged, except that the title is trimmed', async (t) => {
    for (const [title, content] of [
      ['x'.repeat(200), 'x'.repeat(65536)],
      ['😀'.repeat(200), 'é'.repeat(32768)],
      ['  Trimmed ', ' tab\tand\r\nline ends '],
      ['__proto__', ''],
    ] as const) {
      const { data, errors } = await create({ title, content })
      t.equal(errors, undefined)
      t.match(data.createPost, { title: title.trim(), content, author: { id: owner.id } })
      t.same((await post(usher, { query: `{ post(id: "${data.createPost.id}") { title content } }` })).data.post, {
        title: title.trim(), content,
      })
    }
    const escaped = '\\u00e9'.repeat(32768)
    const { data } = await post(
      usher, { mutation: `{ createPost(input: { title: "Inline", content: "${escaped}" }) { content } }` }, owner
    )
    t.equal(data.createPost.content, 'é'.repeat(32768))
  })

  t.test('7.6 authorId is the actor by default, and only an admin may name another user', async (t) => {
    const authorOf = async (input: object, user: LoggedIn) =>
      (await create({ title: 'A', content: '', ...input }, user)).data.createPost.author.id
    t.equal(await authorOf({}, owner), owner.id)
    t.equal(await authorOf({ authorId: null }, owner), owner.id)
    t.equal(await authorOf({ authorId: owner.id }, owner), owner.id)
    t.equal(await authorOf({ authorId: owner.id.toUpperCase() }, owner), owner.id)
    t.equal(await authorOf({ authorId: owner.id }, admin), owner.id)
    for (const authorId of [other.id, admin.id, UNKNOWN, 'x', '']) {
      t.match(await create({ title: 'A', content: '', authorId }), {
        data: null, errors: [{ message: 'You may not do this', extensions: { code: 'FORBIDDEN' } }],
      })
    }
    for (const authorId of [UNKNOWN, 'x', '', '\u0000']) {
      t.match(await create({ title: 'A', content: '', authorId }, admin), {
        data: null, errors: [{ message: 'User not found', extensions: { code: 'USER_NOT_FOUND' } }],
      })
    }
  })

  t.test('7.4 only the owner and admins may change or delete a post', async (t) => {
    const update = (id: string, input: string, user: LoggedIn) =>
      post(usher, { mutation: `{ updatePost(id: "${id}", input: ${input}) { title content author { id } } }` }, user)
    const remove = (id: string, user: LoggedIn) => post(usher, { mutation: `{ deletePost(id: "${id}") }` }, user)
    const author = { id: owner.id }
    const id = await createPost(usher, owner, 'First')

    t.same(
      (await update(id, '{ title: " Second " }', owner)).data.updatePost, { title: 'Second', content: 'Words', author }
    )
    t.same((await update(id, '{ content: "" }', admin)).data.updatePost, { title: 'Second', content: '', author })
    t.same((await update(id.toUpperCase(), '{ title: null, content: null }', owner)).data.updatePost, {
      title: 'Second', content: '', author,
    })
    t.same((await update(id, '{}', owner)).data.updatePost, { title: 'Second', content: '', author })
    t.match(await update(id, '{ title: " ", content: "\\u0001" }', owner), {
      data: null,
      errors: [{
        extensions: {
          code: 'INVALID_INPUT', errors: ['title must not be blank', 'content must not contain control characters'],
        },
      }],
    })
    const forbidden = { data: null, errors: [{ message: 'You may not do this', extensions: { code: 'FORBIDDEN' } }] }
    t.match(await update(id, '{ title: "Third" }', other), forbidden)
    t.match(await remove(id, other), forbidden)
    t.same((await post(usher, { query: `{ post(id: "${id}") { title } }` })).data.post, { title: 'Second' })

    t.same(await remove(id.toUpperCase(), owner), { data: { deletePost: id } })
    t.same((await post(usher, { query: `{ post(id: "${id}") { title } }` })).data.post, null)
    const another = await createPost(usher, owner)
    t.same(await remove(another, admin), { data: { deletePost: another } })
    for (const unknown of [id, UNKNOWN, 'x', '']) {
      const notFound = { data: null, errors: [{ message: 'Post not found', extensions: { code: 'POST_NOT_FOUND' } }] }
      t.match(await update(unknown, '{ title: "A" }', admin), notFound)
      t.match(await remove(unknown, admin), notFound)
    }
  })

  t.test('10.2 ifMatch of updatePost and deletePost: a post in another state stays as it is', async (t) => {
    const id = await createPost(usher, owner, 'First')
    const row = async () =>
      (await sql`select title, row_version from posts where id = ${id}`).map((row) => ({ ...row }))
    const update = (ifMatch: string | null, user = owner, of = id) => post(usher, {
      query: 'mutation ($id: ID!, $ifMatch: String) { updatePost(id: $id, input: { title: "Changed" }, ifMatch: $ifMatch) { title } }',
      variables: { id: of, ifMatch },
    }, user)
    const remove = (ifMatch: string | null, user = owner, of = id) => post(usher, {
      query: 'mutation ($id: ID!, $ifMatch: String) { deletePost(id: $id, ifMatch: $ifMatch) }',
      variables: { id: of, ifMatch },
    }, user)
    const before = await row()
    const tag = await tagOfRow(sql, 'posts', id)
    for (const stale of ['"1"', `W/${tag}`, `"1", W/${tag}`, '"no-tag-of-ours"']) {
      for (const change of [update, remove]) {
        t.match(
          await change(stale),
          { data: null, errors: [{ message: /state/, extensions: { code: 'PRECONDITION_FAILED' } }] },
          stale
        )
      }
    }
    for (const malformed of ['', 'x', '"a', '*, "a"']) {
      for (const change of [update, remove]) {
        t.match(await change(malformed), {
          data: null,
          errors: [{ extensions: { code: 'INVALID_INPUT', errors: ['ifMatch must be * or a list of entity tags'] } }],
        }, malformed)
        t.match(await change(malformed, other), { errors: [{ extensions: { code: 'FORBIDDEN' } }] })
      }
    }
    for (const change of [update, remove]) {
      t.match(await change('*', owner, UNKNOWN), { errors: [{ extensions: { code: 'POST_NOT_FOUND' } }] })
    }
    t.same(await row(), before)

    const answers = await Promise.all(Array.from({ length: 50 }, () => update(tag)))
    t.equal(
      answers.filter(({ data }) => data?.updatePost).length, 1, 'of fifty writers with the same tag, one succeeds'
    )
    t.equal(answers.filter(({ errors }) => errors?.[0]!.extensions.code === 'PRECONDITION_FAILED').length, 49)
    for (const match of ['*', null, undefined]) {
      t.match(await update(match === undefined ? `"1", ${await tagOfRow(sql, 'posts', id)}` : match), {
        data: { updatePost: { title: 'Changed' } },
      })
    }
    t.match(await remove(await tagOfRow(sql, 'posts', id)), { data: { deletePost: id } })
  })

  t.test('7.3 if many requests delete and change a post at once, exactly one deletes it', async (t) => {
    for (let round = 0; round < 5; round++) {
      const id = await createPost(usher, owner)
      const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => post(usher, {
        mutation: index % 2 === 0
          ? `{ deletePost(id: "${id}") }`
          : `{ updatePost(id: "${id}", input: { title: "${index}" }) { title } }`,
      }, owner)))
      t.equal(answers.filter(({ data }) => data?.deletePost === id).length, 1)
      for (const { errors } of answers) {
        if (errors) t.match(errors, [{ message: 'Post not found', extensions: { code: 'POST_NOT_FOUND' } }])
      }
    }
  })

  t.test('7.6 fifty posts are created while their author is deleted: each request gets a response, and no post remains', async (t) => {
    for (const poster of ['the author', 'an admin']) {
      const author = await createUser()
      const input = { title: 'Race', content: '', authorId: author.id }
      const posting = Array.from({ length: 50 }, () => create(input, poster === 'an admin' ? admin : author))
      const deleting = inject('DELETE', `/api/users/${author.id}`, { headers: admin.headers })
      const more = Array.from({ length: 50 }, () => create(input, poster === 'an admin' ? admin : author))
      const outcomes = (await Promise.all([...posting, ...more])).map(({ data, errors }) =>
        errors?.map(({ extensions }) => extensions.code).join() ?? data.createPost.title)
      // OVERLOADED: until the deletion is committed, it is not known whether the author will exist.
      const expected = ['Race', 'USER_NOT_FOUND', 'INVALID_TOKEN', 'OVERLOADED']
      t.same(outcomes.filter((outcome) => !expected.includes(outcome)), [], poster)
      t.equal((await deleting).statusCode, 204)
      t.same(await sql`select count(*)::int from posts where title = 'Race'`, [{ count: 0 }])
    }
  })
})

t.test('7.4 the policy of a host decides', async (t) => {
  const usher = await createUsher(
    t, { policy: { 'posts:create': ({ role }) => role === 'admin', 'posts:delete': () => false } }
  )
  const id = await createPost(usher, usher.admin)
  const user = await usher.createUser()
  t.match(
    (await post(usher, { query: CREATE, variables: { input: { title: 'A', content: '' } } }, user)).errors,
    [{ extensions: { code: 'FORBIDDEN' } }]
  )
  t.match(
    (await post(usher, { mutation: `{ deletePost(id: "${id}") }` }, usher.admin)).errors,
    [{ extensions: { code: 'FORBIDDEN' } }]
  )
})

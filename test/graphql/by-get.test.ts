import { createHash } from 'node:crypto'
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client'
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries'
import { Client, fetchExchange } from '@urql/core'
import t from 'tap'
import { sharedUsher } from '../helpers/app.ts'
import { createPost, hostOf } from '../helpers/graphql.ts'

const STRICT = 'application/graphql-response+json'
const usher = await sharedUsher()
const { admin, inject, createUser } = usher

type Parameters = Record<string, string>
const get = (parameters: Parameters | string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
  inject(method, `/graphql?${new URLSearchParams(parameters)}`, { headers })

t.test('7.9 a query by GET gets its result', async (t) => {
  const query = 'query A ($id: ID!) { user(id: $id) { email } } query B { me { id } }'
  const requests: Parameters[] = [
    { query: '{ me { id } }' },
    { query: '{ me { id } }', variables: '', operationName: '', extensions: '' },
    { query, operationName: 'B', variables: 'null' },
  ]
  for (const parameters of requests) {
    const response = await get(parameters, admin.headers)
    t.match([response.statusCode, response.json()], [200, { data: { me: { id: admin.id } } }])
    t.match(response.headers, {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'private, no-cache',
      vary: 'Accept, Authorization',
    })
  }
  t.same((await get({ query, operationName: 'A', variables: JSON.stringify({ id: admin.id }) })).json(), {
    data: { user: { email: admin.email } },
  })
  t.same((await get({ query: '{ me { id } }' })).json(), { data: { me: null } }, 'without a token')
})

t.test('7.9 the result has an entity tag, and a client that has it gets 304', async (t) => {
  const user = await createUser()
  const parameters = { query: `{ user(id: "${user.id}") { name } me { id } }` }
  const first = await get(parameters)
  const etag = first.headers.etag as string
  t.match(etag, /^"[\w-]{22}"$/)
  const known = await get(parameters, { 'if-none-match': etag })
  t.same([known.statusCode, known.body, known.headers.etag], [304, '', etag])
  const head = await get(parameters, {}, 'HEAD')
  t.same([head.statusCode, head.body, head.headers.etag, head.headers['content-length']], [
    200, '', etag, String(first.rawPayload.length),
  ])
  t.equal((await get(parameters, { ...user.headers, 'if-none-match': etag })).statusCode, 200, 'another reader')
  await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { name: 'Other' } })
  const changed = await get(parameters, { 'if-none-match': etag })
  t.match([changed.statusCode, changed.json()], [200, { data: { user: { name: 'Other' } } }])
  const stale = await get(parameters, { 'if-match': etag })
  t.match([stale.statusCode, stale.json().errors[0].extensions.code, stale.headers['cache-control']], [
    412, 'PRECONDITION_FAILED', 'no-store',
  ])
})

t.test('7.9 a mutation by GET gets 405 with Allow, and nothing changes', async (t) => {
  const id = await createPost(usher, admin)
  for (const [parameters, headers] of [
    [{ query: `mutation { deletePost(id: "${id}") }` }, {}],
    [{ query: `query A { me { id } } mutation B { deletePost(id: "${id}") }`, operationName: 'B' }, { accept: STRICT }],
  ] as const) {
    for (const method of ['GET', 'HEAD'] as const) {
      const response = await get(parameters, { ...admin.headers, ...headers }, method)
      t.same([response.statusCode, response.headers.allow], [405, 'POST'])
      if (method === 'GET') {
        t.match(response.json(), {
          errors: [{ message: 'Mutations must be sent by POST', extensions: { code: 'METHOD_NOT_ALLOWED' } }],
        })
      }
    }
  }
  t.match((await get({ query: `{ post(id: "${id}") { id } }` })).json(), { data: { post: { id } } })
})

t.test('7.9 failures: as JSON the status is 200 if the request is an operation, as graphql-response+json it tells that nothing was executed', async (t) => {
  const failures: [what: string, parameters: Parameters |
    string, headers: Record<string, string>, code: string, json: number, strict: number][] = [
    ['no query', {}, {}, 'BAD_REQUEST', 400, 400],
    ['a blank query', { query: ' ' }, {}, 'BAD_REQUEST', 400, 400],
    ['two queries', 'query={me{id}}&query={me{id}}', {}, 'BAD_REQUEST', 400, 400],
    ['variables that are no JSON', { query: '{ me { id } }', variables: '{' }, {}, 'BAD_REQUEST', 400, 400],
    ['variables that are no object', { query: '{ me { id } }', variables: '1' }, {}, 'BAD_REQUEST', 400, 400],
    ['a subscription', { query: 'subscription { postCreated { id } }' }, {}, 'BAD_REQUEST', 400, 400],
    [
      'a persisted query', { extensions: '{"persistedQuery":{"version":1,"sha256Hash":"x"}}' }, {},
      'PERSISTED_QUERY_NOT_SUPPORTED', 200, 400,
    ],
    ['a syntax error', { query: '{' }, {}, 'GRAPHQL_INVALID', 200, 400],
    ['an unknown field', { query: '{ nothing }' }, {}, 'GRAPHQL_INVALID', 200, 400],
    [
      'no operation of that name', { query: 'query A { me { id } }', operationName: 'B' }, {}, 'GRAPHQL_INVALID', 200,
      400,
    ],
    ['a missing variable', { query: 'query ($id: ID!) { user(id: $id) { id } }' }, {}, 'GRAPHQL_INVALID', 200, 400],
    ['a bad token', { query: '{ me { id } }' }, { authorization: 'Bearer x' }, 'INVALID_TOKEN', 200, 401],
    ['a field that failed', { query: '{ user(id: "x") { id } me { id } }' }, {}, 'USER_NOT_FOUND', 200, 200],
  ]
  for (const [what, parameters, headers, code, json, strict] of failures) {
    const responses = [await get(parameters, headers), await get(
      parameters, { ...headers, accept: `${STRICT}, application/json;q=0.9` }
    )]
    t.same(responses.map(({ statusCode }) => statusCode), [json, strict], what)
    const types = responses.map(({ headers }) => headers['content-type'])
    t.same(types, ['application/json; charset=utf-8', `${STRICT}; charset=utf-8`], what)
    for (const response of responses) {
      t.match(response.json(), { errors: [{ extensions: { code } }] }, what)
      t.same([response.headers['cache-control'], response.headers.etag], ['no-store', undefined], what)
    }
    if (strict === 200) for (const response of responses) t.match(response.json(), { data: { user: null, me: null } })
    else t.same(responses.map((response) => 'data' in response.json()), [true, false], what)
  }
  const unauthorized = await get({ query: '{ me { id } }' }, { authorization: 'Bearer x', accept: STRICT })
  t.equal(unauthorized.headers['www-authenticate'], 'Bearer error="invalid_token"')
})

t.test('7.9 urql and Apollo Client query by GET, and write by POST', async (t) => {
  const user = await createUser()
  const url = `http://${await hostOf(usher)}/graphql`
  const seen: string[] = []
  usher.app.server.on('request', ({ method }) => { seen.push(method!) })
  const query = 'query ($id: ID!) { user(id: $id) { id } }'
  const mutation = 'mutation ($title: String!) { createPost(input: { title: $title, content: "" }) { title } }'

  const urql =
    new Client({ url, exchanges: [fetchExchange], preferGetMethod: true, fetchOptions: { headers: user.headers } })
  t.same((await urql.query(query, { id: user.id }).toPromise()).data, { user: { id: user.id } })
  t.same((await urql.mutation(mutation, { title: 'By urql' }).toPromise()).data, { createPost: { title: 'By urql' } })
  t.match(
    (await urql.query('{ user(id: "x") { id } }', {}).toPromise()).error?.graphQLErrors, [{ message: 'User not found' }]
  )
  t.match(
    (await urql.query('{ nothing }', {}).toPromise()).error?.graphQLErrors,
    [{ message: 'Cannot query field "nothing" on type "Query".' }]
  )

  const apollo = new ApolloClient({
    link: new HttpLink({ uri: url, useGETForQueries: true, headers: user.headers }),
    cache: new InMemoryCache({ addTypename: false } as object),
  })
  t.match((await apollo.query({ query: gql(query), variables: { id: user.id } })).data, { user: { id: user.id } })
  t.match((await apollo.mutate({ mutation: gql(mutation), variables: { title: 'By Apollo' } })).data, {
    createPost: { title: 'By Apollo' },
  })
  await t.rejects(
    apollo.query({ query: gql('{ nothing }') }), { message: 'Cannot query field "nothing" on type "Query".' }
  )
  t.same(seen, ['GET', 'POST', 'GET', 'GET', 'GET', 'POST', 'GET'])
})

t.test('7.9 Apollo Client with persisted queries sends the query after the first answer', async (t) => {
  const uri = `http://${await hostOf(usher)}/graphql`
  const urls: string[] = []
  usher.app.server.on('request', ({ url }) => { urls.push(url!) })
  const persisted = new PersistedQueryLink({
    sha256: (text) => createHash('sha256').update(text).digest('hex'), useGETForHashedQueries: true,
  })
  const apollo = new ApolloClient({ link: persisted.concat(new HttpLink({ uri })), cache: new InMemoryCache() })
  for (const id of [admin.id, (await createUser()).id]) {
    const { data } = await apollo.query({ query: gql('query ($id: ID!) { user(id: $id) { id } }'), variables: { id } })
    t.match(data, { user: { id } })
  }
  const sent = urls.map((url) => url.includes('persistedQuery'))
  t.same(sent, [true, false, false], 'one request without the query')
})

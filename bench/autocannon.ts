// The load generator for machines without wrk. It runs in its own process and gets the load as its argument.
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'
import type { Counts, Load, Work } from './load.ts'

const { url, work, keysFile, token, seconds, connections } = JSON.parse(process.argv[2]!) as Load
const keys = readFileSync(keysFile, 'utf8').trim().split('\n')
const some = () => keys[Math.floor(Math.random() * keys.length)]!
const json = { 'content-type': 'application/json' }
const bearer = { ...json, authorization: `Bearer ${token}` }
const query = 'query($id: ID!) { user(id: $id) { id name posts(first: 10) { id title } } }'
const postgraphile = 'query($id: UUID!) { userByRowId(rowId: $id) { rowId name ' +
  'postsByAuthorId(first: 10, orderBy: [PRIMARY_KEY_DESC]) { nodes { rowId title } } } }'
const mutation = 'mutation { createPost(input: { title: "A post", content: "Words" }) { id title } }'
// The address that data.ts has given to the user with this id.
const email = (id: string) =>
  `user${Number.parseInt(id.slice(0, 13).replace('-', ''), 16) - 1_700_000_000_000}@bench.example.com`
let count = 0

function replacement (): autocannon.Request {
  const id = some()
  return {
    method: 'PUT',
    path: `/api/users/${id}`,
    headers: bearer,
    body: JSON.stringify({ name: `Name ${count}`, email: email(id), role: 'user' }),
  }
}

const requests: Record<Work, () => autocannon.Request> = {
  user: () => ({ path: `/api/users/${some()}` }),
  userByMember: () => ({ path: `/api/users/${some()}`, headers: bearer }),
  revalidated: () => {
    const [id, tag] = some().split(' ') as [string, string]
    return { path: `/api/users/${id}`, headers: { 'if-none-match': tag } }
  },
  list: () => ({ path: '/api/users?role=user&limit=50' }),
  firstPage: () => ({ path: '/api/users?limit=50' }),
  page: () => ({ path: `/api/users?limit=50&after=${some()}` }),
  longPage: () => ({ path: `/api/users?limit=1000&after=${some()}` }),
  listed: () => ({ path: `/api/users?${some()}` }),
  protected: () => ({ path: '/api/protected', headers: bearer }),
  graphql: () =>
    ({ method: 'POST', path: '/graphql', headers: json, body: JSON.stringify({ query, variables: { id: some() } }) }),
  postgraphile: () => ({
    method: 'POST',
    path: '/graphql',
    headers: json,
    body: JSON.stringify({ query: postgraphile, variables: { id: some() } }),
  }),
  createUser: () => ({
    method: 'POST',
    path: '/api/users',
    headers: bearer,
    body: JSON.stringify({ name: 'Somebody', email: `${process.pid}.${Date.now()}.${count}@write.example.com` }),
  }),
  replaceUser: replacement,
  patchUser: () => ({
    method: 'PATCH', path: `/api/users/${some()}`, headers: bearer, body: JSON.stringify({ name: `Name ${count}` }),
  }),
  createPost: () => ({ method: 'POST', path: '/graphql', headers: bearer, body: JSON.stringify({ query: mutation }) }),
  createUserOnce: () => once(requests.createUser()),
  createPostOnce: () => once(requests.createPost()),
  mixed: () => requests[mix[count % mix.length]!](),
}

// Every request has a key of its own.
function once (request: autocannon.Request): autocannon.Request {
  return { ...request, headers: { ...request.headers, 'idempotency-key': crypto.randomUUID() } }
}

// The same mix as in requests.lua.
const mix: Work[] = [
  'user', 'protected', 'user', 'list', 'graphql', 'user', 'protected', 'firstPage', 'user', 'createUser',
  'user', 'protected', 'user', 'list', 'graphql', 'user', 'protected', 'firstPage', 'user', 'createPost',
]

const result = await autocannon({
  url,
  connections,
  duration: seconds,
  requests: [{
    setupRequest: (request) => {
      count++
      return { ...request, ...requests[work]() }
    },
  }],
})
const counts: Counts = {
  seconds: result.duration,
  answers: result.requests.total,
  // Like wrk, which counts 304 as a success.
  not2xx: result['4xx'] + result['5xx'],
  refused: result.statusCodeStats?.['503']?.count ?? 0,
  socketErrors: result.errors,
  p50: result.latency.p50,
  p99: result.latency.p99,
  max: result.latency.max,
}
console.log(JSON.stringify(counts))

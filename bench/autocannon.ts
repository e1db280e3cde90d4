// The generator where wrk is not installed: a process of its own, told its load by its argument.
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'
import type { Load, Sample } from './load.ts'

const { url, work, idsFile, token, seconds, connections } = JSON.parse(process.argv[2]!) as Load
const ids = readFileSync(idsFile, 'utf8').trim().split('\n')
const some = () => ids[Math.floor(Math.random() * ids.length)]!
const json = { 'content-type': 'application/json' }
const bearer = { ...json, authorization: `Bearer ${token}` }
const query = 'query($id: ID!) { user(id: $id) { id name posts(first: 10) { id title } } }'
const mutation = 'mutation { createPost(input: { title: "A post", content: "Words" }) { id title } }'
let count = 0

const requests: Record<Load['work'], () => autocannon.Request> = {
  user: () => ({ path: `/api/users/${some()}` }),
  list: () => ({ path: '/api/users?role=user&limit=50' }),
  protected: () => ({ path: '/api/protected', headers: bearer }),
  graphql: () => ({ method: 'POST', path: '/graphql', headers: json, body: JSON.stringify({ query, variables: { id: some() } }) }),
  createUser: () => ({ method: 'POST', path: '/api/users', headers: bearer, body: JSON.stringify({ name: 'Somebody', email: `${process.pid}.${Date.now()}.${count++}@write.example.com` }) }),
  createPost: () => ({ method: 'POST', path: '/graphql', headers: bearer, body: JSON.stringify({ query: mutation }) }),
}

const result = await autocannon({
  url,
  connections,
  duration: seconds,
  requests: [{ setupRequest: (request) => ({ ...request, ...requests[work]() }) }],
})
const sample: Sample = { rate: result.requests.average, p99: result.latency.p99, failures: result.non2xx + result.errors }
console.log(JSON.stringify(sample))

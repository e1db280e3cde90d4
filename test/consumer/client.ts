// A page that knows the client by its published declarations alone, under settings that are not ours.
import { createUsherClient, unwrap, UsherError, type User } from 'fastify-usher/client'
import { followPosts, graphql } from 'fastify-usher/client/posts'

const client = createUsherClient({ baseUrl: 'https://example.com', retry: { tries: 2 }, cache: { entries: 10 } })
const user: User = await client.login({ email: 'ada@example.com', password: 'correct horse' })
const params = { path: { id: user.id } }
const name: string = (await unwrap(client.get('/api/users/{id}', { params }))).name
const names: string[] =
  (await unwrap(client.get('/api/users', { params: { query: { limit: 20 } } }))).map((user) => user.name)
const parts = await unwrap(client.get('/api/users', { params: { query: { fields: 'name' } } }))
export const some: [string, string | undefined][] = parts.map(({ id, name }) => [id, name])
const headers = { Accept: 'application/vnd.api.v2+json' } as const
const second = await unwrap(client.get('/api/users', { headers }))
export const page: [string[], string | null] = [second.data.map(({ name }) => name), second.page.next]
const secondParts = await unwrap(client.get('/api/users', { headers, params: { query: { fields: 'name' } } }))
export const partNames: (string | undefined)[] = secondParts.data.map(({ name }) => name)
const { data, error, response } = await client.put(
  '/api/users/{id}', { params, headers: { 'If-Match': '*' }, body: { name, email: 'ada@example.com' } }
)
client.session.subscribe(({ state, reason }) => { [state, reason, data?.id, names, error, response.status].at(0) })
for await (const { title, cursor } of followPosts(client, { after: 'A', transport: 'socket' })) {
  [title, cursor].map((text) => text.toUpperCase())
}
await graphql<{ users: { nodes: User[] } }>(client, '{ users { nodes { name } } }')
  .catch((error: unknown) => error instanceof UsherError && error.code)

// @ts-expect-error there is no such path
await client.get('/api/nothing')
// @ts-expect-error a user needs an address
await client.post('/api/users', { body: { name: 'Ada' } })
// @ts-expect-error a user has no such member
export const wrong = (await unwrap(client.get('/api/users'))).map((user) => user.nickname)
// @ts-expect-error members that \`fields\` does not name are missing
export const missing: string[] = parts.map((user) => user.name)

import type { Sql } from 'postgres'
import { load } from '../../bench/data.ts'
import type { Account, World } from './actors.ts'
import { ADMIN } from './node-under-attack.ts'
import type { Stage } from './stage.ts'
import type { SigningKey, Subject } from './tokens.ts'

const MEMBERS = 6
const LOGINS = 4
const DISPOSABLE = 4
const VICTIMS = 12
const LONG_POSTS = 100
const LONG_CHARACTERS = 65_000
const PASSWORD = 'an unusual phrase'

/** Creates everything that the attacks need, through the public interface. */
export async function prepareWorld ({ node: { url }, databaseUrl, sql }: Stage): Promise<World> {
  const readers = await load(databaseUrl, 'usher', { users: 1000, posts: 3000 })
  const admin = await logIn(url, ADMIN)
  const create = (name: string, role = 'user') => createAccount(url, admin.token, name, role)
  const members = await createAll(MEMBERS, (index) => create(`member-${index}`))
  const logins = await createAll(LOGINS, (index) => create(`login-${index}`))
  const victims = await createAll(VICTIMS, (index) => create(`victim-${index}`))
  const longWinded = await create('long-winded')
  await writeLongPosts(sql, longWinded.id)

  const loggedOut = await create('ended')
  await send(url, 'POST', '/api/auth/logout', loggedOut.token)
  const deleted = await create('deleted')
  await send(url, 'DELETE', `/api/users/${deleted.id}`, admin.token)
  const demoted = await create('may-admin-demoted', 'admin')
  await send(
    url, 'PUT', `/api/users/${demoted.id}`, admin.token, { name: 'demoted', email: demoted.email, role: 'user' }
  )

  return {
    admin,
    decoy: await create('may-admin-decoy', 'admin'),
    members,
    logins,
    ended: { 'logged out': loggedOut, 'deleted user': deleted, 'demoted admin': { ...demoted, role: 'admin' } },
    disposableAdmins: await createAll(DISPOSABLE, (index) => create(`may-admin-${index}`, 'admin')),
    victims: victims.map(({ id }) => id),
    victimSessions: victims.map(({ sessionId }) => sessionId),
    victimPosts: await createAll(VICTIMS, (index) => createPost(url, victims[index]!.token)),
    victimUploads: await createAll(VICTIMS, (index) => createUpload(url, victims[index]!.token)),
    longWinded: longWinded.id,
    readers,
  }
}

/** Returns the key with which the node signs. */
export async function readSigningKey (sql: Sql): Promise<SigningKey> {
  const [key] = await sql<[
    SigningKey
  ]>`select id, private_key as "privateKey", public_key as "publicKey" from signing_keys order by active_at limit 1`
  return key
}

type LoggedIn = Account & { token: string }

async function logIn (url: string, { email, password }: { email: string, password: string }): Promise<LoggedIn> {
  const { token, user } =
    await send(url, 'POST', '/api/auth/login', undefined, { email, password }) as { token: string, user: Subject }
  const { sid } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { sid: string }
  return { id: user.id, role: user.role, sessionId: sid, email, password, token }
}

async function createAccount (url: string, token: string, name: string, role: string): Promise<LoggedIn> {
  const credentials = { email: `${name}@example.net`, password: PASSWORD }
  await send(url, 'POST', '/api/users', token, { name, role, ...credentials })
  return logIn(url, credentials)
}

async function createPost (url: string, token: string): Promise<string> {
  const query = 'mutation { createPost(input: { title: "A victim\'s", content: "Words" }) { id } }'
  const { data } = await send(url, 'POST', '/graphql', token, { query }) as { data: { createPost: { id: string } } }
  return data.createPost.id
}

async function createUpload (url: string, token: string): Promise<string> {
  const form = new FormData()
  form.set('description', "A victim's")
  form.set('file', new Blob(['words']), 'words.txt')
  const response = await fetch(
    `${url}/api/uploads`, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: form }
  )
  return (await response.json() as { id: string }).id
}

async function writeLongPosts (sql: Sql, authorId: string): Promise<void> {
  await sql`
    insert into posts (id, author_id, title, content)
    select bench_id(number), ${authorId}, 'Long ' || number, repeat('w', ${LONG_CHARACTERS}) from generate_series(1, ${LONG_POSTS}) number`
}

// They are created one after the other, because each costs a password hash.
async function createAll<Item> (count: number, create: (index: number) => Promise<Item>): Promise<Item[]> {
  const created: Item[] = []
  for (let index = 0; index < count; index++) created.push(await create(index))
  return created
}

async function send (url: string, method: string, path: string, token?: string, body?: object): Promise<unknown> {
  const headers = {
    ...token !== undefined && { authorization: `Bearer ${token}` }, ...body && { 'content-type': 'application/json' },
  }
  const response = await fetch(`${url}${path}`, { method, headers, ...body && { body: JSON.stringify(body) } })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.status === 204 ? undefined : response.json()
}

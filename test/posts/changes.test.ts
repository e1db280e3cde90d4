import t, { type Test } from 'tap'
import { createUsher, sharedUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { createPost, openSocket, post, protocols, type TestSocket } from '../helpers/graphql.ts'
import { isNightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const usher = await sharedUsher()
const other = await sharedUsher(usher.options)

const CHANGES = `subscription ($authorId: ID, $after: String) {
  postChanged(authorId: $authorId, after: $after) {
    __typename
    ... on PostCreated { cursor post { id title author { id } } }
    ... on PostUpdated { cursor post { id title author { id } } }
    ... on PostDeleted { cursor id }
  }
}`

interface Change { __typename: string, cursor: string, id?: string, post?: { id: string, title: string } }

async function subscribe (
  t: Test, variables: { authorId?: string, after?: string } = {},
  { node = usher, protocol = protocols[0] as typeof protocols[number] } = {}
): Promise<TestSocket> {
  const socket = await (await openSocket(t, node, { protocol })).init()
  socket.start('changes', CHANGES, { variables })
  return socket
}

async function take (socket: TestSocket, count: number): Promise<Change[]> {
  const found: Change[] = []
  while (found.length < count) {
    const { type, payload } = await socket.next()
    if (!payload?.data) throw new Error(`${type}: ${JSON.stringify(payload)}`)
    found.push(payload.data.postChanged)
  }
  return found
}

/** What a change says, without its cursor. */
const told = ({ __typename: type, id, post }: Change) => [type, id ?? post!.id, ...post ? [post.title] : []]

async function update (node: TestUsher, user: LoggedIn, id: string, title: string): Promise<void> {
  const { errors } = await post(node, {
    query: 'mutation ($id: ID!, $title: String) { updatePost(id: $id, input: { title: $title }) { id } }', variables: { id, title },
  }, user)
  if (errors) throw new Error(JSON.stringify(errors))
}

async function remove (node: TestUsher, user: LoggedIn, id: string): Promise<void> {
  const { errors } = await post(node, { query: 'mutation ($id: ID!) { deletePost(id: $id) }', variables: { id } }, user)
  if (errors) throw new Error(JSON.stringify(errors))
}

t.test('22.1 a subscriber gets creations, changes and deletions of posts in commit order, from any node', async (t) => {
  const author = await usher.createUser()
  const sockets = await Promise.all([usher, other].flatMap((node) =>
    protocols.map((protocol) => subscribe(t, { authorId: author.id }, { node, protocol }))))
  await Promise.all(sockets.map((socket) => socket.settle()))
  const first = await createPost(usher, author, 'First')
  const expected = [['PostCreated', first, 'First']]
  const all = async () => {
    for (const socket of sockets) t.strictSame((await take(socket, 1)).map(told), expected.slice(-1))
  }
  await all()
  await update(other, author, first, 'Changed')
  expected.push(['PostUpdated', first, 'Changed'])
  await all()
  const second = await createPost(other, author, 'Second')
  expected.push(['PostCreated', second, 'Second'])
  await all()
  await remove(usher, author, first)
  expected.push(['PostDeleted', first])
  await all()

  t.test('22.1 and everything after a cursor, on any node', async (t) => {
    const socket = await subscribe(t, { authorId: author.id })
    await socket.settle()
    await update(usher, author, second, 'Second, changed')
    const [{ cursor }] = await take(socket, 1) as [Change]
    socket.socket.terminate()
    const third = await createPost(usher, author, 'Third')
    await update(usher, author, second, 'Second, changed again')
    await remove(usher, author, third)
    for (const node of [usher, other]) {
      t.strictSame(
        (await take(await subscribe(t, { authorId: author.id, after: cursor }, { node }), 2)).map(told),
        [['PostUpdated', second, 'Second, changed again'], ['PostDeleted', third]],
        'of what happened meanwhile, the last state'
      )
    }
  })

  t.test('22.1 the cursor of a page of posts, or of a new post, leads to the changes that follow', async (t) => {
    const { data } = await post(usher, { query: '{ posts(first: 1) { pageInfo { startCursor } } }' })
    const after = data.posts.pageInfo.startCursor
    await update(usher, author, second, 'After the page')
    // What the page has already shown may come again.
    const changes = (await take(await subscribe(t, { authorId: author.id, after }), 3)).map(told)
    t.strictSame(changes.at(-1), ['PostUpdated', second, 'After the page'])
  })
})

t.test('22.1 an update that changes nothing is no change', async (t) => {
  const author = await usher.createUser()
  const id = await createPost(usher, author, 'Same')
  const socket = await subscribe(t, { authorId: author.id })
  await socket.settle()
  await update(usher, author, id, 'Same')
  await update(usher, author, id, 'Other')
  t.strictSame((await take(socket, 1)).map(told), [['PostUpdated', id, 'Other']])
})

t.test('22.1 the posts of a deleted user are deletions, however they are deleted', async (t) => {
  const author = await usher.createUser()
  const ids = [await createPost(usher, author, 'One'), await createPost(usher, author, 'Two')]
  const socket = await subscribe(t, { authorId: author.id })
  await socket.settle()
  t.equal((await usher.inject('DELETE', `/api/users/${author.id}`, { headers: usher.admin.headers })).statusCode, 204)
  const found = await take(socket, 2)
  t.strictSame(new Set(found.map(({ __typename: type, id }) => `${type} ${id}`)), new Set(ids.map((id) => `PostDeleted ${id}`)))
  t.ok(found.every(({ post }) => post === undefined))
})

t.test('22.1 who may not read posts gets no changes, and a filter by an author tells nothing about others', async (t) => {
  const [author, stranger] = [await usher.createUser(), await usher.createUser()]
  const socket = await subscribe(t, { authorId: author.id })
  await socket.settle()
  const strangers = await createPost(usher, stranger, 'Of a stranger')
  await update(usher, stranger, strangers, 'Changed')
  await remove(usher, stranger, strangers)
  const own = await createPost(usher, author, 'Own')
  t.strictSame((await take(socket, 1)).map(told), [['PostCreated', own, 'Own']])

  const closed = await sharedUsher({ policy: { 'posts:read': (actor: unknown) => actor !== null } })
  const nobody = await subscribe(t, {}, { node: closed })
  t.match(await nobody.next(), { type: 'error', payload: [{ extensions: { code: 'UNAUTHENTICATED' } }] })
})

t.test('22.1 deletions are known for 30 days, and an older cursor is rejected', async (t) => {
  const sql = openSql(t, usher)
  const author = await usher.createUser()
  const [old, kept] = [await createPost(usher, author, 'Old'), await createPost(usher, author, 'Kept')]
  const socket = await subscribe(t, { authorId: author.id })
  await socket.settle()
  await remove(usher, author, old)
  const [{ cursor: before }] = await take(socket, 1) as [Change]
  await remove(usher, author, kept)
  const [{ cursor: later }] = await take(socket, 1) as [Change]
  await sql`update post_deletions set deleted_at = now() - interval '31 days' where post_id in ${sql([old, kept])}`
  const purging = await createUsher(t, usher.options)
  await until('they are forgotten', async () => (await sql`select from post_deletions where post_id = ${kept}`).length === 0)
  t.match(
    await (await subscribe(t, { after: before }, { node: purging })).next(),
    { type: 'error', payload: [{ extensions: { code: 'CURSOR_TOO_OLD' } }] }
  )
  const again = await subscribe(t, { authorId: author.id, after: later })
  const last = await createPost(usher, author, 'Last')
  t.strictSame((await take(again, 1)).map(told), [['PostCreated', last, 'Last']], 'the position up to which they are forgotten')
})

t.test('22.1 a list that follows changes is the list of the server, whatever breaks meanwhile', async (t) => {
  const author = await usher.createUser()
  const nodes = [usher, other]
  const followers = Array.from({ length: isNightly ? 12 : 4 }, (_, index) => new Replica(t, author.id, nodes, index))
  await Promise.all(followers.map((follower) => follower.begin()))
  const running = followers.map((follower) => follower.run())
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    const own: string[] = []
    for (let step = 0; step < (isNightly ? 150 : 40); step++) {
      const node = nodes[(writer + step) % 2]!
      const choice = Math.random()
      if (own.length === 0 || choice < 0.4) own.push(await createPost(node, author, `${writer} ${step}`))
      else if (choice < 0.8) await update(node, author, own[Math.floor(Math.random() * own.length)]!, `${writer} ${step}`)
      else await remove(node, author, own.splice(Math.floor(Math.random() * own.length), 1)[0]!)
    }
  })
  await Promise.all(writers)
  const sql = openSql(t, usher)
  const rows = await sql<{ id: string, title: string }[]>`select id, title from posts where author_id = ${author.id}`
  const expected = new Map(rows.map(({ id, title }) => [id, title]))
  const last = await createPost(usher, author, 'The end')
  expected.set(last, 'The end')
  await Promise.race([Promise.all(running), Promise.all(followers.map((follower) => follower.has(last)))])
  for (const follower of followers) {
    follower.stop()
    t.strictSame(new Map([...follower.posts].sort()), new Map([...expected].sort()))
    t.strictSame(follower.wrong, [], 'no creation twice, and none after a change of the post')
  }
  await Promise.all(running)
})

/** The posts of an author as a client sees them that follows changes, and now and then connects to another node. */
class Replica {
  readonly t: Test
  readonly authorId: string
  readonly nodes: readonly TestUsher[]
  readonly number: number
  readonly posts = new Map<string, string>()
  readonly wrong: string[] = []
  readonly #created = new Set<string>()
  readonly #waiting = new Map<string, () => void>()
  #socket: TestSocket | undefined
  #after: string | undefined
  #stopped = false

  constructor (t: Test, authorId: string, nodes: readonly TestUsher[], number: number) {
    this.t = t
    this.authorId = authorId
    this.nodes = nodes
    this.number = number
  }

  async begin (): Promise<void> {
    await this.#connect()
    await this.#socket!.settle()
  }

  async run (): Promise<void> {
    for (let turn = 0; !this.#stopped; turn++) {
      try {
        for (let events = 0; events < 5 + this.number * 4; events++) this.#apply((await take(this.#socket!, 1))[0]!)
      } catch (error) {
        // The test has closed it.
        if (!this.#stopped) throw error
      }
      this.#socket!.socket.terminate()
      if (!this.#stopped) await this.#connect()
    }
  }

  async has (id: string): Promise<void> {
    if (!this.posts.has(id)) await new Promise<void>((resolve) => { this.#waiting.set(id, resolve) })
  }

  stop (): void {
    this.#stopped = true
    this.#socket!.socket.terminate()
  }

  async #connect (): Promise<void> {
    const node = this.nodes[Math.floor(Math.random() * this.nodes.length)]!
    const { t, authorId } = this
    this.#socket = await subscribe(t, { authorId, ...this.#after && { after: this.#after } }, { node })
  }

  #apply ({ __typename: type, cursor, id, post }: Change): void {
    if (this.#after !== undefined && Buffer.compare(Buffer.from(cursor, 'base64url'), Buffer.from(this.#after, 'base64url')) <= 0) {
      this.wrong.push(`${type} ${id ?? post!.id} out of order`)
    }
    this.#after = cursor
    if (type === 'PostDeleted') this.posts.delete(id!)
    else {
      if (type === 'PostCreated' && this.#created.has(post!.id)) this.wrong.push(`${post!.id} is created twice`)
      if (type === 'PostUpdated' && !this.#created.has(post!.id)) this.wrong.push(`${post!.id} is changed before`)
      this.#created.add(post!.id)
      this.posts.set(post!.id, post!.title)
      this.#waiting.get(post!.id)?.()
    }
  }
}

import t, { type Test } from 'tap'
import { createUsher, sharedUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { post as graphql } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const usher = await sharedUsher()

interface Post { id: string, title: string, cursor: string }

async function write (node: TestUsher, user: LoggedIn, title: string, content = ''): Promise<Post> {
  const response = await node.inject('POST', '/api/posts', { headers: user.headers, payload: { title, content } })
  if (response.statusCode !== 201) throw new Error(response.body)
  return response.json()
}

const search = (node: TestUsher, q: string, rest = '') => node.inject('GET', `/api/posts?q=${encodeURIComponent(q)}${rest}`)

/** Returns the titles that a search finds, newest first. */
async function find (node: TestUsher, q: string, rest = ''): Promise<string[]> {
  const response = await search(node, q, rest)
  if (response.statusCode !== 200) throw new Error(response.body)
  return response.json<Post[]>().map(({ title }) => title)
}

/** Follows `Link` from page to page. Returns the titles of each page. */
async function findPages (node: TestUsher, query: string): Promise<string[][]> {
  const pages: string[][] = []
  for (let next = `/api/posts?${query}`; next !== '';) {
    const page = await node.inject('GET', next)
    pages.push(page.json<Post[]>().map(({ title }) => title))
    next = /^<(.*)>; rel="next"$/.exec(`${page.headers.link ?? ''}`)?.[1] ?? ''
  }
  return pages
}

// A node sees at once what it has written itself, and what others have written within seconds.
const wake = (node: TestUsher, user: LoggedIn) => write(node, user, 'Waking')

const untilIndexed = (sql: ReturnType<typeof openSql>) => until('all posts are in the index', async () => {
  const [row] = await sql`select position >= (select last_value from posts_position_seq) as "isDone" from indexed_posts`
  return row?.['isDone']
})

/** Runs `work` twice: while posts are not put into the index, and when all of them are in it. */
async function inBothStates (t: Test, node: TestUsher, work: (t: Test) => Promise<void>): Promise<void> {
  const sql = openSql(t, node)
  const user = await node.createUser()
  await sql.begin(async (trx) => {
    await trx`select from indexed_posts for update`
    await t.test('before the index has them', work)
  })
  await wake(node, user)
  await untilIndexed(sql)
  await t.test('when the index has them', work)
}

t.test('22.3 q finds posts by words of the title and the content, folded', async (t) => {
  const node = await createUsher(t)
  const user = await node.createUser()
  await inBothStates(t, node, async (t) => {
    const sql = openSql(t, node)
    await sql`delete from posts`
    await write(node, user, 'Notes of Élise', 'The Engine weaves: algebraic-patterns, and "flowers"!')
    await write(node, user, 'STRASSE und Straße', 'ΣΊΣΥΦΟΣ engines')
    await write(node, user, '代数の機関', 'すべての花')
    await untilSettled(sql)
    for (const [q, expected] of [
      ['engine', 'STRASSE und Straße,Notes of Élise'],
      ['ENGINE weaves', 'Notes of Élise'],
      ['weaves engine', 'Notes of Élise'],
      ['e\u0301lise FLOWERS', 'Notes of Élise'],
      ['patterns', 'Notes of Élise'],
      ['notes alg', 'Notes of Élise'],
      ['alg notes', ''],
      ['notes al', ''],
      ['ngine', ''],
      ['engine nothing', ''],
      ['straße', 'STRASSE und Straße'],
      ['σίσυφος', 'STRASSE und Straße'],
      ['代数', '代数の機関'],
      ['機', '代数の機関'],
      ['花 機関', '代数の機関'],
      ['weaves/algebraic', 'Notes of Élise'],
    ] as const) t.equal((await find(node, q)).join(), expected, q)
  })

  // Of both states, only the second waits for the index.
  async function untilSettled (sql: ReturnType<typeof openSql>): Promise<void> {
    const locked = await sql`select from indexed_posts for update skip locked`
    if (locked.length > 0) await untilIndexed(sql)
  }
})

t.test('22.3 what is written is found at once, by its new words only, whoever writes it', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const user = await node.createUser()
  const { id } = await write(node, user, 'Changing', 'former words')
  const deleted = await write(node, user, 'Deleted', 'former words')
  await untilIndexed(sql)
  t.strictSame(await find(node, 'former'), ['Deleted', 'Changing'])

  await inBothStates(t, node, async (t) => {
    await node.inject('PATCH', `/api/posts/${id}`, { headers: user.headers, payload: { content: 'later words' } })
    t.strictSame(await find(node, 'later'), ['Changing'])
    await node.inject('DELETE', `/api/posts/${deleted.id}`, { headers: user.headers })
    t.strictSame(await find(node, 'former'), [])
    await sql`delete from posts where title = 'By hand'`
    await sql`insert into posts (id, author_id, title, content) values (uuidv7(), ${user.id}, 'By hand', 'written words')`
    t.strictSame(await find(node, 'written words'), ['By hand'])
    t.strictSame(await find(node, 'words', '&sort=createdAt'), ['Changing', 'By hand'])
  })

  await sql`delete from posts where title = 'By hand'`
  const { id: waking } = await wake(node, user)
  await untilIndexed(sql)
  const left = await sql`select post_id from post_words where words::text like '%/words%' or post_id = ${waking}`
  t.strictSame(left.map((row) => row['post_id']).sort(), [id, waking], 'the index has no words of what is deleted')
})

t.test('22.3 a search combines with authors, times, order and pages, and revalidates', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const [user, other] = [await node.createUser(), await node.createUser()]
  for (const [title, second] of [['A', 1], ['B', 2], ['C', 3], ['D', 4], ['E', 5]] as const) {
    await sql`insert into posts (id, author_id, title, content, created_at)
      values (uuidv7(), ${title === 'C' ? other.id : user.id}, ${title}, 'common', ${`2026-01-01T00:00:0${second}Z`})`
  }
  await inBothStates(t, node, async (t) => {
    t.strictSame(await find(node, 'common'), ['E', 'D', 'C', 'B', 'A'])
    t.strictSame(await find(node, 'common', `&authorId=${user.id.toUpperCase()}`), ['E', 'D', 'B', 'A'])
    t.strictSame(await find(node, 'common', `&authorId=${crypto.randomUUID()}`), [])
    t.strictSame(await find(node, 'common', '&authorId=nobody'), [])
    t.strictSame(await find(node, 'common', '&since=2026-01-01T00:00:03Z'), ['E', 'D', 'C'])
    t.strictSame(await find(node, 'common', '&since=2026-01-01T00:00:04Z&sort=createdAt'), ['D', 'E'])
    t.strictSame(await findPages(node, 'q=common&limit=2'), [['E', 'D'], ['C', 'B'], ['A']])
    t.strictSame(await findPages(node, 'q=common&limit=2&sort=createdAt'), [['A', 'B'], ['C', 'D'], ['E']])
    const { headers: { etag } } = await search(node, 'common')
    t.equal((await node.inject('GET', '/api/posts?q=common', { headers: { 'if-none-match': `${etag}` } })).statusCode, 304)
  })
})

t.test('22.3 pages of posts that are far apart have each of them once, and a page that took long is shorter', async (t) => {
  const node = await createUsher(t, { deadlines: { ...slow, postSearch: 1 } })
  const sql = openSql(t, node)
  const user = await node.createUser()
  // More windows of positions than one statement looks through.
  for (let number = 100; number < 300; number++) {
    await sql`select setval('posts_position_seq', (select last_value + 4096 from posts_position_seq))`
    await sql`insert into posts (id, author_id, title, content)
      values (uuidv7(), ${user.id}, ${`${number}`}, ${number % 100 === 1 ? 'rare' : 'common'})`
  }
  await wake(node, user)
  await untilIndexed(sql)
  for (const [order, rare] of [['-createdAt', ['201', '101']], ['createdAt', ['101', '201']]] as const) {
    const pages = await findPages(node, `q=rare&sort=${order}`)
    t.strictSame(pages.flat(), rare)
    t.ok(pages.length > 1, 'one statement does not look through all')
    t.equal(new Set((await findPages(node, `q=common&limit=30&sort=${order}`)).flat()).size, 198)
  }
  const query = 'query ($after: String) { posts(q: "rare", after: $after) { nodes { title } pageInfo { hasNextPage endCursor } } }'
  const titles: string[] = []
  for (let after: string | null = null, hasNext = true; hasNext;) {
    const { data: { posts } } = await graphql(node, { query, variables: { after } })
    titles.push(...posts.nodes.map(({ title }: Post) => title))
    ;({ hasNextPage: hasNext, endCursor: after } = posts.pageInfo)
  }
  t.strictSame(titles, ['201', '101'])
})

t.test('22.3 a search that says nothing, or anything to a database, is harmless', async (t) => {
  const user = await usher.createUser()
  const rest = `&authorId=${user.id}`
  await write(usher, user, '100% sure', "It's a_b & c|d !e <-> f:* (g) \\h 'i'")
  await write(usher, user, 'Long', `${'x'.repeat(5000)} ${'é'.repeat(3000)} end`)
  for (const [q, expected] of [
    ['%', []], ['...', []], ['🙂', []], ["'", []], ['\\', []], ['!e', ['100% sure']], ['c|zzz', []], ['f:*', ['100% sure']], ['100%', ['100% sure']],
    ["it's a_b", ['100% sure']], ['a&!c', ['100% sure']], ['sure:A', ['100% sure']], ['1/sure', []], ['@', []], [`@${user.id}`, []],
    ['x'.repeat(100), ['Long']], ['é'.repeat(100), ['Long']], ['i '.repeat(50).trim(), ['100% sure']],
  ] as const) t.strictSame(await find(usher, q, rest), expected, q)
  for (const q of ['', ' ', 'x'.repeat(101), 'a\0b', 'a\nb']) t.equal((await search(usher, q, rest)).statusCode, 400, JSON.stringify(q))
  const { errors } = await graphql(usher, { query: '{ posts(q: " ") { nodes { id } } }' })
  t.equal(errors?.[0]?.extensions.code, 'INVALID_INPUT')
})

t.test('22.3 the index is filled without reading posts again that are in it', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const user = await node.createUser()
  const count = 4000
  const countRead = async (): Promise<number> => {
    const [row] = await sql`select (seq_tup_read + idx_tup_fetch)::integer as read from pg_stat_user_tables
      where schemaname = ${node.options.schema!} and relname = 'posts'`
    return row?.['read']
  }
  // Other tests may have had this schema.
  const before = await countRead()
  await sql`insert into posts (id, author_id, title, content)
    select uuidv7(), ${user.id}, n::text, 'word' from generate_series(1, ${count}::integer) n`
  // As autovacuum does: before, PostgreSQL may find it cheaper to read a table of this size as a whole.
  await sql`analyze posts`
  await wake(node, user)
  await untilIndexed(sql)
  // Connections tell what they have read when they end.
  await node.app.close()
  let read = 0
  await until('what was read is known', async () => {
    read = await countRead() - before
    return read >= count
  })
  t.ok(read < 3 * count, `${read} of ${count}`)
})

t.test('22.3 a post that is larger than the API accepts is found by the words at its beginning', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const user = await node.createUser()
  await write(node, user, 'Before', 'w5')
  await untilIndexed(sql)
  await sql`insert into posts (id, author_id, title, content)
    select uuidv7(), ${user.id}, 'Large', string_agg('w' || n, ' ') from generate_series(1, 140000) n`
  await wake(node, user)
  await untilIndexed(sql)
  t.strictSame(await find(node, 'w5'), ['Large', 'Before'])
  t.strictSame(await find(node, 'w1 w9000'), ['Large'])
  t.strictSame(await find(node, 'w139999'), [])
})

t.test('22.3 posts of deleted users are not found', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const [user, other] = [await node.createUser(), await node.createUser()]
  await write(node, other, 'There', 'shared')
  await write(node, user, 'Gone', 'shared')
  await untilIndexed(sql)
  // Without the removal of the posts, which follows a deletion.
  await sql`insert into deleted_users (user_id) values (${user.id})`
  const response = await search(node, 'shared', '&limit=1')
  t.strictSame(response.json<Post[]>().map(({ title }) => title), ['There'])
  t.notOk(response.headers.link)
})

t.test('22.3 a search answers 503 as long as the index lacks more posts than it may look at, and lists go on', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const user = await node.createUser()
  await sql.begin(async (trx) => {
    await trx`select from indexed_posts for update`
    await sql`insert into posts (id, author_id, title, content)
      select uuidv7(), ${user.id}, n::text, 'word' from generate_series(1, 501) n`
    const response = await search(node, 'word')
    t.equal(response.statusCode, 503)
    t.equal(response.json().code, 'SEARCH_NOT_READY')
    t.ok(response.headers['retry-after'])
    t.equal((await node.inject('GET', '/api/posts?limit=1')).json()[0].title, '501')
  })
  await wake(node, user)
  await untilIndexed(sql)
  t.strictSame(await find(node, 'word', '&limit=1'), ['501'])
})

t.test('22.3 a server that is too slow for many posts at once indexes fewer of them', async (t) => {
  const node = await createUsher(t, { deadlines: { ...slow, statement: 1500 } })
  const sql = openSql(t, node)
  const user = await node.createUser()
  await sql`alter function words_of_post rename to fast_words_of_post`
  await sql.unsafe(`create function words_of_post(place bigint, author uuid, title text, content text) returns tsvector
    language plpgsql as $$ begin
      perform pg_sleep(0.02);
      return ${node.options.schema!}.fast_words_of_post(place, author, title, content);
    end $$`)
  await sql`insert into posts (id, author_id, title, content)
    select uuidv7(), ${user.id}, n::text, 'word' from generate_series(1, 200) n`
  await until('all posts are in the index', async () => {
    await wake(node, user)
    const [row] = await sql`select count(*)::integer as count from post_words where post_id in (
      select id from posts where content = 'word')`
    return row?.['count'] === 200
  })
})

t.test('22.3 a search finds what posts say, whatever happened to them', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const user = await node.createUser()
  const words = ['one', 'two', 'three', 'four']
  const some = () => words.filter(() => Math.random() < 0.5).join(' ')
  const posts = new Map<string, { title: string, content: string }>()
  for (let step = 0; step < 120; step++) {
    const [id] = [...posts.keys()].sort(() => Math.random() - 0.5)
    const content = some()
    if (!id || Math.random() < 0.5) {
      posts.set((await write(node, user, `Post ${step}`, content)).id, { title: `Post ${step}`, content })
    } else if (Math.random() < 0.7) {
      await node.inject('PATCH', `/api/posts/${id}`, { headers: user.headers, payload: { content } })
      posts.set(id, { ...posts.get(id)!, content })
    } else {
      await node.inject('DELETE', `/api/posts/${id}`, { headers: user.headers })
      posts.delete(id)
    }
    if (step % 20 === 0) await untilIndexed(sql)
    const q = some() || 'one'
    const expected = [...posts.values()].filter(({ content }) => q.split(' ').every((word) => content.split(' ').includes(word)))
    t.strictSame(await find(node, q, '&limit=1000'), expected.map(({ title }) => title).reverse(), q)
  }
})

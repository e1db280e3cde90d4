import { createClient } from '../db/driver/client.ts'

/** The number of rows to create. */
export interface Amounts { users: number, posts: number }

/**
 * Fills Usher's tables in a PostgreSQL schema with SQL: users with one role besides the admin, and posts spread over
 * them. Ids are UUIDv7 in the past, one millisecond apart. Returns the ids of some random users.
 */
export async function load (url: string, schema: string, { users, posts }: Amounts): Promise<string[]> {
  const sql = createClient(url, { max: 1, onnotice: () => {}, connection: { search_path: schema } })
  try {
    await sql.unsafe(`
      create or replace function bench_id (at bigint) returns uuid language sql volatile as
      $$ select encode(substring(int8send(1700000000000 + at) from 3) || '\\x70'::bytea || substring(decode(md5(random()::text), 'hex') from 1 for 1)
        || '\\x80'::bytea || substring(decode(md5(random()::text), 'hex') from 1 for 7), 'hex')::uuid $$`)
    await sql.unsafe(`
      insert into users (id, name, email, role)
      select bench_id(n), 'User ' || n, 'user' || n || '@bench.example.com', 'user' from generate_series(1, ${users}) n`)
    // The trigger is disabled, because no node needs notifications of these posts.
    await sql.unsafe('alter table posts disable trigger user')
    await sql.unsafe(`
      insert into posts (id, author_id, title, content)
      select bench_id(n), author.id, 'Post ' || n, repeat('Words of a post. ', 12)
      from (select id, row_number() over () as place from users where role = 'user') author
      join generate_series(1, ${posts}) n on n % ${users} = author.place - 1`)
    await sql.unsafe('alter table posts enable trigger user')
    await sql.unsafe('vacuum analyze users')
    await sql.unsafe('vacuum analyze posts')
    const rows = await sql<{
      id: string
    }[]>`select id from users where email like '%@bench.example.com' order by random() limit 10000`
    return rows.map(({ id }) => id)
  } finally {
    await sql.end()
  }
}

/** Returns `limit` ids in the order of the list, newest first, starting at `offset`. */
export async function idsFrom (
  url: string, schema: string, { offset, limit }: { offset: number, limit: number }
): Promise<string[]> {
  const sql = createClient(url, { max: 1 })
  try {
    const rows =
      await sql<{ id: string }[]>`select id from ${sql(schema)}.users order by id desc offset ${offset} limit ${limit}`
    return rows.map(({ id }) => id)
  } finally {
    await sql.end()
  }
}

import postgres from 'postgres'

/** How much there is to read. */
export interface Data { users: number, posts: number }

/**
 * Fills Usher's tables, by the database itself: users spread over two roles, posts spread over users. Ids are
 * UUIDv7 in the past, a millisecond apart.
 *
 * @returns ids of some of the users, at random
 */
export async function load (url: string, { users, posts }: Data): Promise<string[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    await sql.unsafe(`
      create or replace function usher.bench_id (at bigint) returns uuid language sql volatile as
      $$ select encode(substring(int8send(1700000000000 + at) from 3) || '\\x70'::bytea || substring(decode(md5(random()::text), 'hex') from 1 for 1)
        || '\\x80'::bytea || substring(decode(md5(random()::text), 'hex') from 1 for 7), 'hex')::uuid $$`)
    await sql.unsafe(`
      insert into usher.users (id, name, email, role)
      select usher.bench_id(n), 'User ' || n, 'user' || n || '@bench.example.com', 'user' from generate_series(1, ${users}) n`)
    // Without the trigger: nobody listens to the past.
    await sql.unsafe('alter table usher.posts disable trigger user')
    await sql.unsafe(`
      insert into usher.posts (id, author_id, title, content)
      select usher.bench_id(n), author.id, 'Post ' || n, repeat('Words of a post. ', 12)
      from (select id, row_number() over () as place from usher.users where role = 'user') author
      join generate_series(1, ${posts}) n on n % ${users} = author.place - 1`)
    await sql.unsafe('alter table usher.posts enable trigger user')
    await sql.unsafe('vacuum analyze usher.users')
    await sql.unsafe('vacuum analyze usher.posts')
    const rows = await sql<{ id: string }[]>`select id from usher.users where email like '%@bench.example.com' order by random() limit 10000`
    return rows.map(({ id }) => id)
  } finally {
    await sql.end()
  }
}

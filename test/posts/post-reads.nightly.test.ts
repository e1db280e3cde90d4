import t from 'tap'
import { createTelemetry } from '../../db/telemetry/telemetry.ts'
import { authorPostsKey } from '../../db/posts/posts.ts'
import { createPostReads } from '../../plugins/posts/post-reads.ts'
import { openConnection } from '../helpers/connection.ts'
import { slow } from '../helpers/deadlines.ts'
import { createUsher } from '../helpers/app.ts'
import { openSql } from '../helpers/sql.ts'

const FIELDS = ['position', 'title', 'content'] as const
// In bytes.
const LIST = 64 * 1024
const STATEMENT = 1024 * 1024

t.test('7.8 lists of posts with more than 64 KiB of contents are completed afterwards', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const { db } = await openConnection(t, { schema: usher.options.schema! })
  const telemetry = createTelemetry()
  const { list, listOfAuthor, complete } = createPostReads(db, { batch: telemetry.batch, deadlines: slow })
  const ofAuthor = (id: string) => listOfAuthor(authorPostsKey(id, 50, FIELDS))

  // Replaces all posts by those of new authors, each with posts of these sizes, oldest first. Returns the ids of the
  // authors.
  async function fill (...authors: number[][]): Promise<string[]> {
    await sql`delete from posts`
    return Promise.all(authors.map(async (sizes) => {
      const { id } = await usher.createUser()
      for (const [index, bytes] of sizes.entries()) {
        await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${id}, ${`${index}`}, ${'é'.repeat(bytes / 2)})`
      }
      return id
    }))
  }

  // Returns the number of statements that have read large contents.
  async function countStatements (): Promise<number> {
    const { samples } = (await telemetry.metrics.read()).find(({ name }) => name === 'usher_batch_items')!
    return (samples.find(({ labels }) => labels['batch'] === 'posts.read-large') as { count: number }).count
  }

  t.test('a list of up to 64 KiB has its contents', async (t) => {
    const [id] = await fill([LIST / 2, LIST / 2])
    const { rows } = await list({ fields: FIELDS, limit: 50 })
    for (const posts of [rows, await ofAuthor(id!)]) {
      t.same(
        posts.map(({ title, content }) => [title, Buffer.byteLength(content!)]), [['1', LIST / 2], ['0', LIST / 2]]
      )
      t.equal(await complete(posts), posts)
    }
  })

  t.test('a longer one has their sizes, and gets them afterwards, without the posts that were deleted or with the changes that were made', async (t) => {
    const [id] = await fill([LIST, 2, 4])
    const { rows } = await list({ fields: FIELDS, limit: 50 })
    const posts = await ofAuthor(id!)
    for (const row of [...rows, ...posts]) t.equal(row.content, null)
    t.same(rows.map(({ contentBytes }) => contentBytes), [4, 2, LIST])
    t.same(posts.map(({ contentBytes }) => contentBytes), [4, 2, LIST])
    t.match(
      await complete(rows),
      [{ title: '2', content: 'éé' }, { title: '1', content: 'é' }, { title: '0', content: 'é'.repeat(LIST / 2) }]
    )
    await sql`delete from posts where title = '1'`
    await sql`update posts set title = 'New', content = 'Other' where title = '2'`
    t.match(await complete(posts), [{ title: 'New', content: 'Other' }, { title: '0', content: 'é'.repeat(LIST / 2) }])
  })

  t.test('a page with a post beyond its end counts that one, too, and lists without contents do not', async (t) => {
    await fill([LIST, 2])
    const { rows: [row], next } = await list({ fields: FIELDS, limit: 1 })
    t.match(row, { title: '1', content: null })
    t.strictSame(next, { position: row!.position, epoch: row!.epoch })
    const [short] = (await list({ fields: ['title'], limit: 1 })).rows
    t.strictSame(Object.keys(short!), ['id', 'position', 'epoch', 'title'])
  })

  t.test('a statement reads up to 1 MiB for several lists, and long ones do not take the place of short ones', async (t) => {
    const short = Array.from({ length: 16 }, () => [LIST])
    const ids = await fill([LIST, 2], ...short, [2])
    const posts = await Promise.all(ids.map(ofAuthor))
    t.same(posts.map(([newest]) => newest!.content === null), [true, ...short.map(() => false), true])
  })

  t.test('large contents are read in statements of at most 1 MiB', async (t) => {
    await fill(Array.from({ length: 40 }, () => LIST))
    const { rows } = await list({ fields: FIELDS, limit: 50 })
    const before = await countStatements()
    const completed = await complete(rows)
    t.same(completed.map(({ title }) => title), Array.from({ length: 40 }, (_, index) => `${39 - index}`))
    t.equal(await countStatements() - before, Math.ceil(40 * LIST / STATEMENT))
  })
})

import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { createPost, post } from '../../helpers/graphql.ts'
import { createProxy } from '../../helpers/proxy.ts'
import { openSql, untilBlocked } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

t.test('1.11 a write that got 503 does not undo a later, acknowledged write', async (t) => {
  const application = `late writes ${process.pid}`
  const proxy = await createProxy(t, `${await testDatabaseUrl()}?application_name=${encodeURIComponent(application)}`)
  const one = await createUsher(t)
  const two = await createUsher(t, { ...one.options, databaseUrl: proxy.url, deadlines: {} })
  const { admin } = one
  const sql = openSql(t, one)
  const user = await one.createUser()
  const postId = await createPost(one, admin)
  const rename = async ({ inject }: TestUsher, name: string) =>
    (await inject(
      'PUT', `/api/users/${user.id}`, { headers: admin.headers, payload: { name, email: user.email } }
    )).statusCode
  const change = async (usher: TestUsher, title: string) =>
    (await post(
      usher, { query: `mutation { updatePost(id: "${postId}", input: { title: "${title}" }) { id } }` }, admin
    )).errors?.[0]!.extensions.code
  const write = async (usher: TestUsher, text: string) => Promise.all([rename(usher, text), change(usher, text)])
  const backends = async () =>
    (await sql`select pid from pg_stat_activity where application_name = ${application}`).map(({ pid }) =>
      pid as number)
  const signal = (pids: number[], name: NodeJS.Signals) => { for (const pid of pids) process.kill(pid, name) }
  const faults: Record<string, [begin: (pids: number[]) => void, end: (pids: number[]) => void]> = {
    'the network delays it': [proxy.freeze, proxy.thaw],
    'its PostgreSQL processes are stopped': [(pids) => signal(pids, 'SIGSTOP'), (pids) => signal(pids, 'SIGCONT')],
  }

  for (const [how, [begin, end]] of Object.entries(faults)) {
    for (let round = 0; round < 2; round++) {
      await until('both nodes can write', async () => String(await write(two, 'Before')) === '200,')
      const former = await backends()
      begin(former)
      t.strictSame(await write(two, 'Late'), [503, 'DATABASE_UNAVAILABLE'], how)
      t.strictSame(await write(one, 'Acknowledged'), [200, undefined])
      end(former)
      await until(
        'the delayed connections are closed', async () => (await backends()).every((pid) => !former.includes(pid))
      )
      const [row] = await sql`select name, title from users, posts where users.id = ${user.id} and posts.id = ${postId}`
      t.strictSame({ ...row }, { name: 'Acknowledged', title: 'Acknowledged' }, how)
    }
  }
})

t.test('1.11 a write that PostgreSQL receives too late, because others on its connection waited for a lock, is sent again', async (t) => {
  const usher = await createUsher(t, { poolSize: 2 })
  const users = [await usher.createUser(), await usher.createUser(), await usher.createUser()]
  const sql = openSql(t, usher)
  const put = (id: string, email: string) =>
    usher.inject('PUT', `/api/users/${id}`, { headers: usher.admin.headers, payload: { name: 'New', email } })
  let puts: Promise<{ statusCode: number }>[] = []
  await sql.begin(async (trx) => {
    await trx`select from users where id = ${users[0]!.id} for update`
    puts = users.map(({ id, email }) => put(id, email))
    await untilBlocked(sql, usher)
    await delay(1000)
  })
  t.strictSame((await Promise.all(puts)).map(({ statusCode }) => statusCode), [200, 200, 200])
})

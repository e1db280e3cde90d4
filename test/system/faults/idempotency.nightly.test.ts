import t from 'tap'
import { createDatabase } from '../../helpers/database.ts'
import { KeyedWrites } from '../../helpers/keyed-writes.ts'
import { startNode } from '../../helpers/node.ts'
import { openSql } from '../../helpers/sql.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('10.4 after kill -9 of a node, repeated requests return the same results, and every record exists once', async (t) => {
  const databaseUrl = await createDatabase(t)
  const settings = {
    DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent',
  }
  const cwd = t.testdir()
  const start = () => startNode(t, { cwd, settings })
  let [node, other] = await Promise.all([start(), start()])
  const writes = new KeyedWrites(() => Math.random() < 0.5 ? node.url : other.url, (await node.login(admin)).headers)
  const running = writes.run(16)
  await writes.acknowledge(200)
  node.child.kill('SIGKILL')
  t.equal(await node.ended, 'SIGKILL')
  node = await start()
  await writes.acknowledge(200)
  writes.stop()
  await running
  t.ok(writes.writes.some(({ attempts }) => attempts > 1), 'the crash has cut off responses')
  t.strictSame(await writes.check(openSql(t, { options: { databaseUrl, schema: 'usher' } })), [])
})

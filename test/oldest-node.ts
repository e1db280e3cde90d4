// Whether a node and its server work with the oldest supported Node.js, for `.ci/run`. In the nightly list, all tests
// use that one.
import t from 'tap'
import { createDatabase } from './helpers/database.ts'
import { startNode, stopNode } from './helpers/node.ts'
import { runFiles } from './helpers/run-folder.ts'

runFiles('http/http-server.test.ts')

t.test('8 a node starts with the oldest Node.js, serves and stops', async (t) => {
  const admin = { email: 'root@example.com', password: 'horse battery staple' }
  const settings = {
    DATABASE_URL: await createDatabase(t), ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password,
  }
  const node = await startNode(t, { cwd: t.testdir(), settings })
  const { headers } = await node.login(admin)
  t.equal((await node.fetch('/api/protected', { headers })).status, 200)
  t.equal(await stopNode(node), 0)
})

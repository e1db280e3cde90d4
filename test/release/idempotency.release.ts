import t from 'tap'
import { startDatabase } from '../helpers/database.ts'
import { KeyedWrites } from '../helpers/keyed-writes.ts'
import { startNode, type ServingNode } from '../helpers/node.ts'
import { openSql } from '../helpers/sql.ts'

const KILLS = 20
const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('10.4 while nodes and PostgreSQL are killed, repeated requests return the same results, and every record exists once', async (t) => {
  const { url: databaseUrl, dataDir: cwd, killPostmaster } = await startDatabase(t)
  const settings = {
    DATABASE_URL: databaseUrl,
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    LOG_LEVEL: 'silent',
    // It may take longer on a busy machine than a token is valid by default.
    ACCESS_TOKEN_SECONDS: '86400',
  }
  const start = async (): Promise<ServingNode> => {
    for (;;) {
      try {
        return await startNode(t, { cwd, settings })
      } catch {
        // The database was unavailable.
      }
    }
  }
  const nodes = [await start(), await start()]
  const writes = new KeyedWrites(
    () => nodes[Math.floor(Math.random() * nodes.length)]!.url, (await nodes[0]!.login(admin)).headers
  )
  const running = writes.run(16)
  for (let kill = 0; kill < KILLS; kill++) {
    await writes.acknowledge(100)
    if (kill % 4 === 3) {
      await killPostmaster()
    } else {
      const killed = nodes.shift()!
      killed.child.kill('SIGKILL')
      await killed.ended
      nodes.push(await start())
    }
  }
  await writes.acknowledge(100)
  writes.stop()
  await running
  t.comment(
    `${writes.writes.length} writes, ${writes.writes.filter(({ attempts }) => attempts > 1).length} of them repeated`
  )
  t.strictSame(await writes.check(openSql(t, { options: { databaseUrl, schema: 'usher' } })), [])
})

import t from 'tap'
import postgres from 'postgres'
import { testDatabaseUrl } from '../helpers/database.ts'
t.test('x', async (t) => {
  const sql = postgres(await testDatabaseUrl())
  t.match(await sql`show max_connections`, [{ max_connections: '400' }])
  await sql.end()
})

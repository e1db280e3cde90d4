import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import t from 'tap'
import { explainStart } from '../../../db/driver/start-errors.ts'

t.test('12.11 a start that misses a file does not blame the database, and one without a Unix socket does', async (t) => {
  // Short enough for the path of a socket.
  const path = '/nowhere/missing'
  const unread = await readFile(path).catch((error: Error) => error) as Error
  t.equal(explainStart(unread, 'usher'), unread)
  const [unconnected] = await once(connect({ path }), 'error')
  t.match(explainStart(unconnected, 'usher'), { message: 'usher: the database cannot be reached (ENOENT)' })
})

import t from 'tap'
import { openConnection } from '../../helpers/connection.ts'
import { oldBytesOf } from '../../helpers/old-objects.ts'

const MiB = 2 ** 20
// The rows of one statement take some 300 KiB.
const ROWS = 'select number, repeat(md5(number::text), 8) as text from generate_series(1, 1000) number'

t.test('rows are freed by the next collection of young objects after they were used', async (t) => {
  const { query } = await openConnection(t)
  const read = () => oldBytesOf(50, () => query(ROWS))
  await read()
  const bytes = await read()
  t.ok(bytes < 2 * MiB, `${bytes} bytes became old`)
})

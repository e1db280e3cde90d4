import t from 'tap'
import { openConnection } from '../../helpers/connection.ts'
import { countPromotedBytes } from '../../helpers/promotion.ts'

const MiB = 2 ** 20
// The rows of one statement take some 300 KiB.
const ROWS = 'select number, repeat(md5(number::text), 8) as text from generate_series(1, 1000) number'

t.test('rows are not promoted to the old generation after they were used', async (t) => {
  const { query } = await openConnection(t)
  const read = () => countPromotedBytes(50, () => query(ROWS))
  await read()
  const bytes = await read()
  t.ok(bytes < 2 * MiB, `${bytes} bytes were promoted`)
})

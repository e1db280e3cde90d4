import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { openConnection } from '../../helpers/connection.ts'

const STATEMENTS = 50
// The rows of one statement take some 300 KiB.
const ROWS = 'select number, repeat(md5(number::text), 8) as text from generate_series(1, 1000) number'

t.test('rows are freed by the next collection of young objects after they were used', async (t) => {
  const { query } = await openConnection(t)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void
  const oldObjects = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')!.space_used_size

  // Returns the number of bytes that became old objects while many results were read.
  async function growth (): Promise<number> {
    collect()
    const before = oldObjects()
    for (let i = 0; i < STATEMENTS; i++) {
      await query(ROWS)
      collect({ type: 'minor' })
    }
    return oldObjects() - before
  }

  await growth()
  const bytes = await growth()
  t.ok(bytes < 2 * 2 ** 20, `${bytes} bytes became old`)
})

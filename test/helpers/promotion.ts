import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Returns the number of bytes that V8 promotes to the old generation while something is done many times, with a
 * scavenge after each time.
 */
export async function countPromotedBytes (times: number, action: () => Promise<unknown>): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void
  const oldGeneration = () =>
    getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')!.space_used_size
  collect()
  const before = oldGeneration()
  for (let time = 0; time < times; time++) {
    await action()
    collect({ type: 'minor' })
  }
  return oldGeneration() - before
}

import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Returns the number of bytes that become old objects while something is done many times, with a collection of young objects after each time. */
export async function oldBytesOf (times: number, action: (time: number) => Promise<unknown>): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void
  const oldObjects = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')!.space_used_size
  collect()
  const before = oldObjects()
  for (let time = 0; time < times; time++) {
    await action(time)
    collect({ type: 'minor' })
  }
  return oldObjects() - before
}

import type { Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher, type TestUsher } from './app.ts'
import type { StandbyGroup } from './standbys.ts'
import { until } from './until.ts'

// Without an earlier teardown, tap would remove the folder before the servers that use it have stopped.
export const folderOf = (t: Test): string => {
  t.teardown(() => {})
  return t.testdir()
}

/** Returns the values of a metric by its label. */
export async function countsOf ({ app }: TestUsher, name: string): Promise<Record<string, number>> {
  const { samples } = (await app.usher.metrics()).find((metric) => metric.name === name)!
  return Object.fromEntries(samples.map((sample) => [Object.values(sample.labels)[0], 'value' in sample && sample.value]))
}

/** Returns why the primary has answered reads of a node, and how often. */
export const fallbacks = (usher: TestUsher) => countsOf(usher, 'usher_replica_fallbacks_total')
/** Returns how many reads of a node the standbys have answered, and how many the primary. */
export const readsOf = (usher: TestUsher) => countsOf(usher, 'usher_replica_reads_total')

/** A node that uses standbys. */
export interface Opened extends TestUsher {
  readonly lines: string[]
  /** The statements that were logged as slow. */
  readonly slow: { readonly statement: string, readonly standby?: string, readonly ms: number }[]
  /** Changes the name of a user. */
  rename (id: string, name: string): Promise<number>
  nameOf (id: string): Promise<string>
  /** Reads until so many standbys are used. */
  untilUsed (count: number): Promise<void>
}

/** Starts a node until the test ends. */
export async function open (t: Test, options: UsherOptions): Promise<Opened> {
  const lines: string[] = []
  const slow: Opened['slow'] = []
  const write = (line: string) => {
    const entry = JSON.parse(line)
    lines.push(entry.msg)
    if (entry.msg === 'A statement was slow') slow.push(entry)
  }
  const usher = await createUsher(t, options, { logger: { level: 'info', stream: { write } } })
  const { headers } = usher.admin
  const nameOf = async (id: string) => (await usher.inject('GET', `/api/users/${id}`, { headers })).json().name
  return {
    ...usher,
    lines,
    slow,
    nameOf,
    rename: async (id, name) =>
      (await usher.inject('PATCH', `/api/users/${id}`, { headers, payload: { name } })).statusCode,
    untilUsed: (count) => until(`${count} standbys are used`, async () => {
      await usher.app.usher.users.get(usher.admin.id)
      return Object.values(await countsOf(usher, 'usher_replica_used')).filter(Boolean).length === count
    }),
  }
}

export const optionsOf = ({ primary, standbys }: StandbyGroup): UsherOptions => ({
  databaseUrl: primary.url, replicaUrls: standbys.map(({ url }) => url),
})

import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { startEmbedded } from '../../db/embedded.ts'

/** Where the PostgreSQL of the test runs lives. */
export const folder = fileURLToPath(new URL('../../.tap/usher/', import.meta.url))

/** The PostgreSQL that test/before.ts has started: one for all test files, so each works in a schema of its own. */
export async function testDatabaseUrl (): Promise<string> {
  return readFile(`${folder}url`, 'utf8')
}

/** A schema name that nobody else has, telling the test file it comes from. */
export function uniqueSchema (name: string): string {
  return `t_${name.toLowerCase().replace(/[^a-z0-9]+/g, '_').slice(0, 24)}_${randomBytes(6).toString('hex')}`
}

/** A PostgreSQL of a test file's own, to be killed: it is then started again, on the same port. Stopped by the test's end. */
export async function startDatabase (t: Test): Promise<{ url: string, dataDir: string, postmaster: () => Promise<number> }> {
  // Otherwise tap would remove the folder first.
  t.teardown(() => {})
  const dataDir = t.testdir()
  const { url, stop } = await startEmbedded({ dataDir, settings: { fsync: 'off' } })
  t.teardown(stop)
  return { url, dataDir, postmaster: async () => parseInt(await readFile(`${dataDir}/postgres/data/postmaster.pid`, 'utf8')) }
}

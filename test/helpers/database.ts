import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import postgres from 'postgres'
import type { Test } from 'tap'
import { startEmbedded } from '../../node/embedded/server.ts'

/** Where the PostgreSQL of the test runs lives. */
export const folder = fileURLToPath(new URL('../../.tap/usher/', import.meta.url))

/** A database that is only copied. */
export const template = `${folder}template`

/** The PostgreSQL that test/before.ts has started: one for all test files, so each works in a schema of its own. */
export async function testDatabaseUrl (): Promise<string> {
  return readFile(`${folder}url`, 'utf8')
}

/** A schema name that nobody else has, telling the test file it comes from. */
export function uniqueSchema (name: string): string {
  return `t_${name.toLowerCase().replace(/[^a-z0-9]+/g, '_').slice(0, 24)}_${randomBytes(6).toString('hex')}`
}

/**
 * Creates a database on the PostgreSQL of the run, and returns its URL: every node uses the same schema of its database. Dropped by
 * the test's end.
 */
export async function createDatabase (t: Test): Promise<string> {
  const url = new URL(await testDatabaseUrl())
  const name = uniqueSchema(t.name)
  const run = async (statement: string) => {
    const sql = postgres(url.href, { max: 1, onnotice: () => {}, connect_timeout: 60 })
    await sql.unsafe(statement).finally(() => sql.end())
  }
  await run(`create database ${name}`)
  t.teardown(() => run(`drop database ${name} with (force)`))
  return Object.assign(new URL(url), { pathname: name }).href
}

/** Returns the test's folder with a database in it that was never started: making one takes seconds. */
export async function prepareFolder (t: Test): Promise<string> {
  // Otherwise tap would remove the folder before the teardowns run.
  t.teardown(() => {})
  const dataDir = t.testdir()
  await promisify(execFile)('cp', ['-a', `${template}/postgres`, dataDir])
  return dataDir
}

/** A PostgreSQL of a test file's own, to be killed: it is then started again, on the same port. Stopped by the test's end. */
export async function startDatabase (t: Test): Promise<{ url: string, dataDir: string, postmaster: () => Promise<number> }> {
  const dataDir = await prepareFolder(t)
  const { url, stop } = await startEmbedded({ dataDir, settings: { fsync: 'off' } })
  t.teardown(stop)
  return { url, dataDir, postmaster: async () => parseInt(await readFile(`${dataDir}/postgres/data/postmaster.pid`, 'utf8')) }
}

import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import postgres from 'postgres'
import type { Test } from 'tap'
import { startEmbedded, type EmbeddedOptions, type EmbeddedServer } from '../../node/embedded/server.ts'
import { TEST_TIMEOUT_MS } from './deadlines.ts'

/** Settings of a server whose data need not survive a crash of the machine. */
export const quick = { fsync: 'off' }

/** Starts a server that is stopped when the test ends. */
export async function start (t: Test, dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, settings: quick, ...options })
  t.teardown(() => server.stop())
  return server
}

/** Returns the test's folder. tap removes it before the teardowns run, unless there was a teardown before the folder. */
export function folder (t: Test, content?: Parameters<Test['testdir']>[0]): string {
  t.teardown(() => {})
  return t.testdir(content)
}

/** Runs a query on a separate connection and returns its rows. */
export async function query (url: string, text: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 30 })
  try {
    return [...await sql.unsafe(text)]
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/**
 * Calls `check` until it returns something, and returns that. If `check` throws, it is called again. Throws after
 * `TEST_TIMEOUT_MS`.
 */
export async function until<T> (what: string, check: () => Promise<T | false | undefined>): Promise<T> {
  for (const deadline = Date.now() + TEST_TIMEOUT_MS; Date.now() < deadline; await setTimeout(20)) {
    const result = await check().catch(() => undefined)
    if (result) return result
  }
  throw new Error(`timed out after ${TEST_TIMEOUT_MS / 1000} s, waiting for: ${what}`)
}

export const pidFile = (dataDir: string) => join(dataDir, 'postgres/data/postmaster.pid')

/** Returns the process id of the server. */
export const postmaster = async (dataDir: string) => parseInt(await readFile(pidFile(dataDir), 'utf8'))

/** Returns whether no server is running. */
export const isDown = (dataDir: string) => stat(pidFile(dataDir)).then(() => false, () => true)

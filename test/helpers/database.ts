import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import postgres from 'postgres'
import type { Test } from 'tap'
import { startEmbedded } from '../../node/embedded/server.ts'
import { slowNode } from './deadlines.ts'
import { until } from './until.ts'

/** The folder of the PostgreSQL server that the test run uses. */
export const folder = fileURLToPath(new URL('../../.tap/cluster/', import.meta.url))

/** The folder of a database cluster that is copied and never started. */
export const template = `${folder}template`

// A path of a socket has at most 107 bytes on Linux and 103 on macOS.
const MAX_FOLDER_LENGTH = 70

const INSUFFICIENT_PRIVILEGE = '42501'

// A killed run may have left a server on which another state of the tree has prepared the databases.
const files = new URL('../../db/migrations/', import.meta.url)
const state = createHash('sha256')
for (const name of readdirSync(files)) state.update(readFileSync(new URL(name, files)))

/** Distinguishes what is prepared for tests by the migrations of the tree. */
export const STATE = state.digest('hex').slice(0, 12)

/** The database whose tables those of tests are copies of. Nobody may be connected to it. */
export const MODEL = `model_${STATE}`

/**
 * Returns the URL of the PostgreSQL server that test/before.ts has started. All test files share it, so each uses its
 * own schema.
 */
export async function testDatabaseUrl (): Promise<string> {
  return readFile(`${folder}url`, 'utf8')
}

/**
 * Returns the URL of the same server by its Unix socket, on which a statement takes less CPU time than over TCP. It is
 * that of TCP where the path of the socket would be too long for the system.
 */
export async function testSocketUrl (): Promise<string> {
  return readFile(folder.length < MAX_FOLDER_LENGTH ? `${folder}socket-url` : `${folder}url`, 'utf8')
}

/** Returns the option `path` of postgres.js, which does not read the folder of a socket from a URL. */
export function socketOf (url: string): { path?: string } {
  const { hostname, port } = new URL(url)
  return hostname.startsWith('%2F') ? { path: `${decodeURIComponent(hostname)}/.s.PGSQL.${port}` } : {}
}

/** Returns a unique schema name that contains the name of the test file. */
export function uniqueSchema (name: string): string {
  return `t_${name.toLowerCase().replace(/[^a-z0-9]+/g, '_').slice(0, 24)}_${randomBytes(6).toString('hex')}`
}

/**
 * Creates a database on the shared PostgreSQL server and returns its URL. Nodes need this because every node uses the
 * same schema name. It has the tables of a node: to copy them takes a fifth of the work of creating them. The database
 * is dropped when the test ends.
 * @param options.empty whether it has no tables
 * @param options.locale how `create database` sets the locale, which needs an empty one
 */
export async function createDatabase (
  t: Test, { locale, empty = locale !== undefined }: { empty?: boolean, locale?: string } = {}
): Promise<string> {
  const url = new URL(await testDatabaseUrl())
  const name = uniqueSchema(t.name)
  const run = async (statement: string, { href } = url) => {
    const sql = postgres(href, { max: 1, onnotice: () => {}, connect_timeout: 60 })
    await sql.unsafe(statement).finally(() => sql.end())
  }
  await run(`create database ${name} ${empty ? locale ?? '' : `template ${MODEL} strategy file_copy`}`)
  // PostgreSQL may be vacuuming the database, and only a superuser may end that process.
  const drop = () => run(`drop database ${name} with (force)`).then(() => true, (error: { code?: string }) => {
    if (error.code !== INSUFFICIENT_PRIVILEGE) throw error
  })
  t.teardown(() => until('the database is dropped', drop))
  const created = Object.assign(new URL(url), { pathname: name })
  // By this time, databases that use the same folder of uploads know each other.
  if (!empty) await run(`update usher.migrations set timestamp = '${new Date().toISOString()}'`, created)
  return created.href
}

/**
 * Returns a folder, by default that of the test, with a database cluster in it. It is a copy, because creating a
 * cluster takes seconds.
 */
export async function prepareFolder (t: Test, folder?: string): Promise<string> {
  // tap removes the folder of a test before the teardowns run, unless a teardown was added first.
  t.teardown(() => {})
  const dataDir = folder ?? t.testdir()
  await promisify(execFile)('cp', ['-a', `${template}/postgres`, dataDir])
  return dataDir
}

/** A separate PostgreSQL server. */
export interface TestDatabase {
  readonly url: string
  readonly dataDir: string
  /** Returns the id of its main process. */
  postmaster (): Promise<number>
  /**
   * Kills the main process and resolves when there is another one. The processes that serve connections outlive the
   * first for a moment and go on writing, but the other one only starts when they have ended.
   */
  killPostmaster (): Promise<void>
}

/**
 * Starts a separate PostgreSQL server with a port for a test that kills it. It is then restarted on the same port. It
 * is stopped when the test ends.
 * @param folder by default that of the test, which has room for one
 */
export async function startDatabase (t: Test, folder?: string): Promise<TestDatabase> {
  const dataDir = await prepareFolder(t, folder)
  const settings = { fsync: 'off' }
  const { tcpUrl: url = '', stop } = await startEmbedded({ dataDir, tcp: true, settings, deadlines: slowNode })
  t.teardown(stop)
  const postmaster = async () => parseInt(await readFile(`${dataDir}/postgres/data/postmaster.pid`, 'utf8'))
  return {
    url,
    dataDir,
    postmaster,
    async killPostmaster () {
      const killed = await postmaster()
      process.kill(killed, 'SIGKILL')
      await until('PostgreSQL is started again', async () => {
        // The file is absent or empty for a moment.
        const current = await postmaster().catch(() => NaN)
        return current > 0 && current !== killed
      })
    },
  }
}

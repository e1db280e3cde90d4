import { setTimeout } from 'node:timers/promises'
import type { Sql } from 'postgres'
import { createClient } from '../../db/driver/client.ts'
import { inTime } from '../../schema/runtime/in-time.ts'
import { NODE_DEADLINES, type NodeDeadlines } from '../process/deadlines.ts'
import { readRunning, urlOf, type Cluster, type Running } from './cluster.ts'

/**
 * A node's share in a running server. It ends with its connection, and therefore with the node, even if the node is
 * killed.
 */
export interface Lease {
  /** Resolves when the connection is lost. */
  readonly closed: Promise<void>
  /**
   * Releases the share, and stops the server if no other node has one. Resolves with whether the server is down. Never
   * throws.
   */
  release (): Promise<boolean>
}

/**
 * Thrown if the server of another folder answers on the port, for example of the folder that this one was copied from.
 */
export class ForeignServer extends Error {
  constructor () {
    super('another PostgreSQL server uses its port')
  }
}

// The advisory lock that each node holds in shared mode. A node that gets it exclusively is the last one and may stop
// the server. A node that cannot get it in shared mode waits until the server is down, and then starts it again.
const LOCK = 8_310_423

/**
 * Takes a share in the server that `postmaster.pid` names.
 * @returns the lease, or undefined if the server is starting or stopping
 * @throws `ForeignServer` if the server of another cluster answers, or another error if none does
 */
export async function takeLease (
  cluster: Cluster, running: Running, deadlines: NodeDeadlines = NODE_DEADLINES
): Promise<Lease | undefined> {
  const { embeddedAnswer: answerMs } = deadlines
  const { pid } = running
  const { promise: closed, resolve: onclose } = Promise.withResolvers<void>()
  const sql = createClient(urlOf(cluster, running), {
    max: 1,
    // The connection is the lease. By default, the client would replace it after some time.
    max_lifetime: 0,
    idle_timeout: 0,
    // `answer` limits the time instead.
    connect_timeout: 0,
    fetch_types: false,
    onclose: () => onclose(),
    // postgres.js prints notices to the console.
    connection: { application_name: 'usher-lease', client_min_messages: 'error' }
  })
  try {
    const [server] = await answer(
      sql`select current_setting('cluster_name') as name, pg_try_advisory_lock_shared(${LOCK}) as shared`, answerMs
    )
    if (server?.name !== cluster.name) throw new ForeignServer()
    // The server may have been replaced since the file was read, usually by one on the same port.
    const isSame = (await readRunning(cluster))?.pid === pid
    if (server.shared && isSame) return { closed, release: () => giveBack(cluster, pid, sql, deadlines) }
  } catch (error) {
    await sql.end({ timeout: 0 })
    // Class 57: the server is starting or stopping. Class 53: it has too many connections at the moment.
    if (!/^5[37]/.test(String((error as { code?: string }).code))) throw error
  }
  await sql.end({ timeout: 0 })
}

async function giveBack (cluster: Cluster, pid: number, sql: Sql, deadlines: NodeDeadlines): Promise<boolean> {
  // A failure means that the server is already down, or so broken that no node can use it.
  const isDown = await leave(cluster, pid, sql, deadlines).catch(() => true)
  await sql.end({ timeout: 0 })
  return isDown
}

async function leave (cluster: Cluster, pid: number, sql: Sql, deadlines: NodeDeadlines): Promise<boolean> {
  const { embeddedAnswer: answerMs, embeddedStop } = deadlines
  // Unlock first: if two nodes requested the exclusive lock while both hold it in shared mode, neither would get it.
  await answer(sql`select pg_advisory_unlock_shared(${LOCK})`, answerMs)
  const [row] = await answer(sql`select pg_try_advisory_lock(${LOCK}) as alone`, answerMs)
  if (row?.alone) await shutDown(cluster, pid, embeddedStop)
  return row?.alone
}

async function shutDown (cluster: Cluster, pid: number, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs
  process.kill(pid, 'SIGINT')
  do await setTimeout(10)
  while (Date.now() < deadline && (await readRunning(cluster))?.pid === pid)
}

// A server that hangs accepts connections but never answers.
const answer = <T> (query: Promise<T>, answerMs: number): Promise<T> =>
  inTime(query, answerMs, () => new Error('it does not answer'))

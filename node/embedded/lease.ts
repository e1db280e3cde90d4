import { setTimeout } from 'node:timers/promises'
import postgres, { type Sql } from 'postgres'
import { readRunning, type Cluster, type Running } from './cluster.ts'

/** A node's share in a running server. It ends with its connection, and so with the node, however that dies. */
export interface Lease {
  /** Settles when the connection is lost. */
  readonly closed: Promise<void>
  /** Gives the share back, and stops the server if nobody else has one: whether it is down then. Never throws. */
  release (): Promise<boolean>
}

/** Another server answers on the port, for example that of the folder this one was copied from. */
export class ForeignServer extends Error {
  constructor () {
    super('another database is served there')
  }
}

// Each node holds this advisory lock shared. Whoever gets it alone is the last one and may stop the server;
// whoever cannot share it waits until the server is down, and starts it anew.
const LOCK = 8_310_423
// A server that works can take seconds on a machine that is busy. One that hangs costs this time at start and stop.
const ANSWER_MS = 10_000
// A fast shutdown still writes a checkpoint. A server that takes longer finishes by itself.
const STOP_MS = 30_000

export function urlOf ({ password }: Cluster, port: number): string {
  return `postgres://usher:${password}@127.0.0.1:${port}/usher`
}

/**
 * Takes a share in the server that `postmaster.pid` tells of.
 * @returns nothing if that server is about to be ready or to stop
 * @param answerMs how long the server may take to answer a question
 * @throws `ForeignServer` if another server than this cluster's answers, or an error if nobody does
 */
export async function takeLease (cluster: Cluster, { pid, port }: Running, answerMs = ANSWER_MS): Promise<Lease | undefined> {
  const { promise: closed, resolve: onclose } = Promise.withResolvers<void>()
  const sql = postgres(urlOf(cluster, port), {
    max: 1,
    // The connection is the lease: by default the client would renew it after some time.
    max_lifetime: 0,
    idle_timeout: 0,
    // See answer().
    connect_timeout: 0,
    fetch_types: false,
    onclose: () => onclose(),
    // Notices would be printed on the console.
    connection: { application_name: 'usher-lease', client_min_messages: 'error' }
  })
  try {
    const [server] = await answer(sql`select current_setting('cluster_name') as name, pg_try_advisory_lock_shared(${LOCK}) as shared`, answerMs)
    if (server?.name !== cluster.name) throw new ForeignServer()
    // The server may have been replaced since the file was read, and the next one mostly has the same port.
    const isSame = (await readRunning(cluster))?.pid === pid
    if (server.shared && isSame) return { closed, release: () => giveBack(cluster, pid, sql, answerMs) }
  } catch (error) {
    await sql.end({ timeout: 0 })
    // 57: starting up or shutting down. 53: full for the moment.
    if (!/^5[37]/.test(String((error as { code?: string }).code))) throw error
  }
  await sql.end({ timeout: 0 })
}

async function giveBack (cluster: Cluster, pid: number, sql: Sql, answerMs: number): Promise<boolean> {
  // A failure means that it is down already, or so hurt that nobody can use it.
  const isDown = await leave(cluster, pid, sql, answerMs).catch(() => true)
  await sql.end({ timeout: 0 })
  return isDown
}

async function leave (cluster: Cluster, pid: number, sql: Sql, answerMs: number): Promise<boolean> {
  // In two steps: if both of two nodes asked while they share it, neither would get it.
  await answer(sql`select pg_advisory_unlock_shared(${LOCK})`, answerMs)
  const [row] = await answer(sql`select pg_try_advisory_lock(${LOCK}) as alone`, answerMs)
  if (row?.alone) await shutDown(cluster, pid)
  return row?.alone
}

async function shutDown (cluster: Cluster, pid: number): Promise<void> {
  const deadline = Date.now() + STOP_MS
  process.kill(pid, 'SIGINT')
  do await setTimeout(10)
  while (Date.now() < deadline && (await readRunning(cluster))?.pid === pid)
}

// A server that hangs accepts connections and never answers, whatever has been asked.
async function answer<T> (query: Promise<T>, answerMs: number): Promise<T> {
  return Promise.race([query, setTimeout(answerMs, undefined, { ref: false }).then(() => { throw new Error('it does not answer') })])
}

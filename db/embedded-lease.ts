import { setTimeout } from 'node:timers/promises'
import postgres, { type Sql } from 'postgres'
import { readRunning, type Cluster } from './embedded-cluster.ts'

/** A node's share in a running server. It ends with its connection, and so with the node, however that dies. */
export interface Lease {
  /** Settles when the connection is lost. */
  readonly closed: Promise<void>
  /** Gives the share back, and stops the server if nobody else has one: whether it is down then. Never throws. */
  giveBack (): Promise<boolean>
}

// Each node holds this advisory lock shared. Whoever gets it alone is the last one and may stop the server;
// whoever cannot share it waits until the server is down, and starts it anew.
const LOCK = 8_310_423
const ANSWER_MS = 5_000
// A fast shutdown still writes a checkpoint. A server that takes longer finishes by itself.
const STOP_MS = 30_000

export function urlOf ({ password }: Cluster, port: number): string {
  return `postgres://usher:${password}@127.0.0.1:${port}/usher`
}

/**
 * Takes a share in the server on `port`.
 * @returns nothing if that server is about to be ready or to stop
 * @throws if nobody answers there, or another server than this cluster's
 */
export async function takeLease (cluster: Cluster, port: number): Promise<Lease | undefined> {
  const { promise: closed, resolve: onclose } = Promise.withResolvers<void>()
  const sql = postgres(urlOf(cluster, port), {
    max: 1,
    // The connection is the lease: by default the client would renew it after some time.
    max_lifetime: 0,
    idle_timeout: 0,
    connect_timeout: ANSWER_MS / 1000,
    fetch_types: false,
    onnotice: () => {},
    onclose: () => onclose(),
    connection: { application_name: 'usher-lease' }
  })
  try {
    const [server] = await answer(sql`select current_setting('cluster_name') as name, pg_try_advisory_lock_shared(${LOCK}) as shared`)
    if (server?.name !== cluster.name) throw new Error('another database is served there')
    if (server.shared) return { closed, giveBack: () => giveBack(cluster, sql) }
  } catch (error) {
    await sql.end({ timeout: 0 })
    // 57: starting up or shutting down. 53: full for the moment.
    if (!/^5[37]/.test(String((error as { code?: string }).code))) throw error
  }
  await sql.end({ timeout: 0 })
}

async function giveBack (cluster: Cluster, sql: Sql): Promise<boolean> {
  try {
    // In two steps: if both of two nodes asked while they share it, neither would get it.
    await answer(sql`select pg_advisory_unlock_shared(${LOCK})`)
    const [row] = await answer(sql`select pg_try_advisory_lock(${LOCK}) as alone`)
    if (row?.alone) await shutDown(cluster)
    return row?.alone
  } catch {
    // It is down already, or so hurt that nobody can use it.
    return true
  } finally {
    await sql.end({ timeout: 0 })
  }
}

async function shutDown (cluster: Cluster): Promise<void> {
  const running = await readRunning(cluster)
  if (running) process.kill(running.pid, 'SIGINT')
  for (const deadline = Date.now() + STOP_MS; Date.now() < deadline;) {
    if ((await readRunning(cluster))?.pid !== running?.pid) return
    await setTimeout(10)
  }
}

// A stopped process accepts connections and never answers.
async function answer<T> (query: Promise<T>): Promise<T> {
  return Promise.race([query, setTimeout(ANSWER_MS, undefined, { ref: false }).then(() => { throw new Error('it does not answer') })])
}

import type { Sql } from 'postgres'
import { isLoss, UNSAFE_TRANSACTION } from './circuit-breaker.ts'
import type { Route } from './route.ts'
import { openClient, type Failure } from './sockets.ts'

const FAREWELL_SECONDS = 1
// postgres.js opens another connection, if there may be one, rather than send a statement behind others.
const OPEN_AT_START = 5

/**
 * A pool of connections that statements share. Each connection carries several statements at a time, but no
 * transaction.
 */
export interface Pool {
  /**
   * Returns the postgres.js client for the next statement, or a promise of it while its first connection is being
   * opened, because its options depend on what is at the other end. Do not keep it, because `renew` replaces it.
   * Rejects with the failure of the connection.
   */
  ready (): Sql | Promise<Sql>
  /**
   * Opens a client's first connections at the same time, for a start that sends several statements at once. Rejects
   * as `ready` does.
   */
  connect (): Promise<void>
  /** The number of its connections that are open. */
  readonly open: number
  /**
   * Replaces every connection with a new one, since a half-open connection would accept statements until TCP gives it
   * up (porsager/postgres#1089).
   * Statements that are still running on the old connections have `seconds` to finish, by default one.
   */
  renew (seconds?: number): void
  /** Reports a statement of the client `sql` that failed because its connection did. Call it at once. */
  fail (sql: Sql, failure: Failure): void
  close (): Promise<void>
}

/** Creates a pool of at most `size` connections, which are opened on demand. */
export function createPool (route: Route, size: number): Pool {
  // The number of statements that failed because no connection could be opened. Each such attempt also causes a call of
  // `onclose`, which is not the loss of a connection.
  let unopened = 0
  let client = open()

  function open () {
    const { options } = route
    const opened = openClient(options, {
      max: size,
      onclose () {
        if (client.sql !== opened.sql) return
        if (unopened > 0) unopened--
        else renew()
      },
    })
    unopened = 0
    const verification: { running?: Promise<void> | undefined } = {}
    return { ...opened, get open () { return opened.open }, options, isVerified: false, verification }
  }

  async function verified (): Promise<Sql> {
    while (!client.isVerified) await (client.verification.running ??= verify(client))
    return client.sql
  }

  // Statements wait for it, so that none is sent in a way that mixes up answers.
  async function verify (verifying: typeof client): Promise<void> {
    try {
      await route.verify(verifying.sql)
      verifying.isVerified = true
      if (verifying === client && verifying.options !== route.options) renew()
    } catch (error) {
      verifying.verification.running = undefined
      if (isLoss(error as Failure)) fail(verifying.sql, error as Failure)
      throw error
    }
  }

  // A statement in one message is right also before the client is verified. Failures are left to the verification.
  async function warmUp ({ sql }: typeof client): Promise<void> {
    await sql.unsafe('select 1').catch((error: Failure) => { if (isLoss(error)) fail(sql, error) })
  }

  // If one connection is lost, all are replaced. In postgres.js 3.4.9, a connection that was reset accepts statements
  // until its 'close' event, but neither sends nor fails them. The next connection in its place then resolves them with
  // an empty result, or with the results of other statements.
  function renew (seconds = FAREWELL_SECONDS): void {
    void client.end(seconds)
    client = open()
  }

  function fail (failed: Sql, { code = '' }: Failure): void {
    if (failed !== client.sql) return
    // Other statements that wait on that connection must not be sent into the transaction, so they get no time to
    // finish.
    if (code === UNSAFE_TRANSACTION) renew(0)
    else if (losses.has(code)) renew()
    else unopened++
  }

  return {
    get open () { return client.open },
    ready: () => client.isVerified ? client.sql : verified(),

    async connect () {
      const first = client
      await Promise.all([verified(), ...Array.from({ length: Math.min(size, OPEN_AT_START) - 1 }, () => warmUp(first))])
    },

    renew,
    fail,
    close: () => client.end(FAREWELL_SECONDS),
  }
}

const losses = new Set(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

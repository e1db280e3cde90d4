import postgres, { type Row, type RowList, type Sql } from 'postgres'
import type { ClientOptions } from './client-options.ts'
import { connectionClosed, createSockets, type Failure } from './sockets.ts'

export interface ListenerOptions {
  /** Milliseconds until it must be connected. */
  timeout: number
  onMessage: (channel: string, payload: string) => void
  /** The connection is gone, or `onMessage` threw. */
  onLost: (failure: Failure) => void
}

export interface Listener {
  /** Runs statements without parameters. */
  run (statements: string): Promise<RowList<Row[]>>
  end (): void
}

/**
 * Opens one connection to where a client's go, for `listen`; nothing is sent before the first statement, and once
 * lost it stays lost.
 */
export function openListener (options: ClientOptions, { timeout, onMessage, onLost }: ListenerOptions): Listener {
  // Once: where somebody accepts and hangs up, as the proxies of a database do that is away, postgres.js would dial
  // again, at once and for ever.
  const sockets = createSockets(options, 1)
  // The options of a client are accepted back as they are; this is how postgres.js opens its own listener.
  const sql = postgres({
    ...options,
    max: 1,
    connect_timeout: timeout / 1000,
    idle_timeout: null,
    max_lifetime: null,
    fetch_types: false,
    debug: false,
    ...sockets.options,
    onclose: () => onLost(connectionClosed()),
    onnotify (channel: string, payload: string) {
      try {
        onMessage(channel, payload)
      } catch (error) {
        // Thrown on, it would end in postgres.js.
        onLost(error as Failure)
      }
    },
  } as never) as unknown as Sql
  return {
    run: (statements) => sql.unsafe(statements),
    end: () => void sql.end({ timeout: 0 }).then(sockets.destroy),
  }
}

import type { Row, RowList } from 'postgres'
import type { ClientOptions } from './client.ts'
import { connectionClosed, openClient, type Failure } from './sockets.ts'

export interface ListenerOptions {
  /** Milliseconds after which an attempt to connect fails. */
  timeout: number
  onMessage: (channel: string, payload: string) => void
  /** Called when the connection is lost, and when `onMessage` throws. */
  onLost: (failure: Failure) => void
}

export interface Listener {
  /** Runs a statement without parameters. */
  run (statement: string): Promise<RowList<Row[]>>
  /** Runs at least two of them in one round trip and one transaction. Resolves with the rows of each. */
  runTogether (statements: readonly string[]): Promise<RowList<Row[]>[]>
  end (): void
}

/**
 * Creates a client with a single connection for LISTEN. It connects with the first statement. It does not reconnect:
 * when the connection is lost, open another listener.
 */
export function openListener (options: ClientOptions, { timeout, onMessage, onLost }: ListenerOptions): Listener {
  // Only one attempt: the proxy of an unavailable database may accept connections and close them. postgres.js would
  // then reconnect immediately, again and again, without end.
  const { sql, end } = openClient(options, {
    max: 1,
    connect_timeout: timeout / 1000,
    idle_timeout: null,
    max_lifetime: null,
    fetch_types: false,
    debug: false,
    onclose: () => onLost(connectionClosed()),
    onnotify (channel: string, payload: string) {
      try {
        onMessage(channel, payload)
      } catch (error) {
        // If it were thrown here, only postgres.js would receive it.
        onLost(error as Failure)
      }
    },
  }, 1)
  return {
    run: (statement) => sql.unsafe(statement),
    runTogether: (statements) => sql.unsafe<RowList<Row[]>[]>(statements.join('; ')),
    end: () => void end(),
  }
}

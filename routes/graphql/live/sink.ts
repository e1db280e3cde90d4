import type { Network } from '../../../schema/http/network.ts'
import type { GraphQLFormattedError } from 'graphql'
import type { Transport } from '../../../plugins/streams/connections.ts'

/** A subscriber with this many unread bytes needs no further events for now. */
export const ENOUGH_BYTES = 64 * 1024

/** Where the events of one subscriber are delivered, such as a socket. */
export interface Sink {
  /** The client's networks, see `networksOf`. */
  readonly networks: readonly Network[]
  readonly transport: Transport
  /** Bytes that were delivered and that the client has not read yet. */
  readonly waiting: number
  /** Called before the first event, with the cursor after which the events begin. */
  begin? (cursor?: string): void
  /** Delivers an event as JSON. `cursor` is that of its post; events of the host have none. */
  deliver (event: string, cursor?: string): void
  /** Resolves when the client has read more, or has closed the connection. */
  drain (): Promise<void>
  /** Called when the events of the host have ended. */
  complete (): void
  /** Called when the subscription has failed. No events follow. */
  fail (errors: readonly GraphQLFormattedError[]): void
}

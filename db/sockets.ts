import { connect, type Socket } from 'node:net'
import type { Sql } from 'postgres'

export type Failure = Error & { code?: string }

/** The sockets of a client, which postgres.js leaves open when it ends one that is only connecting, or half-open. */
export interface Sockets {
  /** For the options of the client. */
  readonly options: { socket?: (options: unknown) => Promise<Socket> }
  /** Destroys them; from now on none is opened. */
  destroy (): void
}

/** The parsed options that matter here; those of the types are what one may write. */
interface Address { host: string[], port: number[], path?: string, socket?: (options: unknown) => Socket | Promise<Socket> }

/**
 * Dials for a client with these options, and at most so often. Where there are several hosts postgres.js goes through
 * them as it dials by itself, and a path is no network's; both stay as they are.
 */
export function createSockets (clientOptions: Sql['options'], limit = Infinity): Sockets {
  const { host: [host, ...others], port: [port], path, socket: dial } = clientOptions as unknown as Address
  const sockets = new Set<Socket>()
  let left = limit

  async function open (options: unknown): Promise<Socket> {
    if (left-- <= 0) throw connectionClosed()
    // The name is what the certificate is checked against.
    const socket = dial ? await dial(options) : Object.assign(connect(port!, host), { host })
    for (const known of sockets) if (known.destroyed) sockets.delete(known)
    sockets.add(socket)
    return socket
  }

  return {
    options: path || others.length > 0 ? {} : { socket: open },

    destroy () {
      left = 0
      for (const socket of sockets) socket.destroy()
    },
  }
}

export const connectionClosed = (): Failure => Object.assign(new Error('The connection was lost'), { code: 'CONNECTION_CLOSED' })

import { connect, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import postgres, { type Sql } from 'postgres'

const ANSWER_MS = 1000

export type Failure = Error & { code?: string }

/** The sockets of a client, which postgres.js leaves open when it ends one that is only connecting, or half-open. */
export interface Sockets {
  /** For the options of the client. */
  readonly options: object
  /** Destroys them; from now on none is opened. */
  destroy (): void
}

interface Host { host: string, port: number }

/** The parsed options that matter here; those of the types are what one may write. */
interface Address { host: string[], port: number[], path?: string | false, socket?: (options: unknown) => Socket | Promise<Socket> }

/**
 * Dials for a client with these options, and at most so often. Where there are several hosts, it is the one that takes
 * currently accepts writes. `path` is the path of a Unix socket.
 */
export function createSockets (clientOptions: Sql['options'], limit = Infinity): Sockets {
  const { host: [host, ...others], port: [port], path, socket: dial } = clientOptions as unknown as Address
  const sockets = new Set<Socket>()
  let [left, over] = [limit, false]
  let primary: Promise<Host> | undefined

  async function open (options: unknown): Promise<Socket> {
    if (over || left-- <= 0) throw connectionClosed()
    const socket = await dialOnce(options)
    for (const known of sockets) if (known.destroyed) sockets.delete(known)
    sockets.add(socket)
    if (over) socket.destroy()
    return socket
  }

  function dialOnce (options: unknown): Socket | Promise<Socket> {
    if (dial) return dial(options)
    if (path) return connect(path)
    return others.length > 0 ? openPrimary() : openTo({ host: host!, port: port! })
  }

  // Known until one of its connections closes: after that it may be another.
  async function openPrimary (): Promise<Socket> {
    const search = primary ??= findPrimary(clientOptions)
    const socket = await search.then(openTo, openFailing)
    return socket.once('close', () => { if (primary === search) primary = undefined })
  }

  return {
    options: { socket: open, ...others.length > 0 && only({ host: host!, port: port! }) },

    destroy () {
      over = true
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * The host that takes writes: a primary, not its standbys. All are asked at once, so that one which is gone and says
 * nothing costs no time. Throws where there is none.
 */
async function findPrimary (clientOptions: Sql['options']): Promise<Host> {
  const { host: hosts, port } = clientOptions as unknown as Address
  try {
    return await Promise.any(hosts.map((host, index) => requireWritable(clientOptions, { host, port: port[index]! })))
  } catch (error) {
    // That of a host which is there tells more.
    const { errors } = error as { errors: Failure[] }
    throw errors.find(({ code }) => code === 'READ_ONLY') ?? errors[0]
  }
}

// By a connection of its own: postgres.js takes a standby of PostgreSQL 14 or later for one that can be written to.
async function requireWritable (clientOptions: Sql['options'], host: Host): Promise<Host> {
  const options = { ...clientOptions, ...only(host), max: 1, connect_timeout: ANSWER_MS / 1000, fetch_types: false, debug: false, onclose () {} } as never as Sql['options']
  const sockets = createSockets(options, 1)
  const sql = postgres({ ...options, ...sockets.options } as never) as unknown as Sql
  try {
    const tooLate = delay(ANSWER_MS, undefined, { ref: false }).then(() => { throw failure('CONNECT_TIMEOUT', 'The host does not answer') })
    const [row] = await Promise.race([sql.unsafe('show transaction_read_only'), tooLate])
    if (row!.transaction_read_only === 'on') throw failure('READ_ONLY', 'The host takes no writes')
    return host
  } finally {
    void sql.end({ timeout: 0 }).then(sockets.destroy)
  }
}

// A client that knows of several hosts never fails a statement for want of a connection: it dials again, for ever.
const only = ({ host, port }: Host) => ({ host: [host], port: [port], target_session_attrs: null })

// The name is what the certificate is checked against.
const openTo = ({ host, port }: Host): Socket => Object.assign(connect(port, host), { host })

// For a dial that throws, postgres.js would keep the place in its pool for ever.
function openFailing (failure: Failure): Socket {
  const socket = new Socket()
  setImmediate(() => socket.destroy(failure))
  return socket
}

const failure = (code: string, message: string): Failure => Object.assign(new Error(message), { code })

export const connectionClosed = (): Failure => failure('CONNECTION_CLOSED', 'The connection was lost')

import { connect, Socket } from 'node:net'
import postgres, { type Sql } from 'postgres'
import { inTime } from '../../schema/runtime/in-time.ts'
import { connectToPath, type ClientOptions } from './client.ts'
import { encrypt } from './tls-socket.ts'

/** A failure of a connection or an error of PostgreSQL, whose severity poolers may report as `severity_local` only. */
export type Failure = Error & { code?: string, severity?: string, severity_local?: string }

/** A client of postgres.js. */
export interface Client {
  readonly sql: Sql
  /** The number of its connections that are open. */
  readonly open: number
  /** Closes its connections. Running statements have `seconds` to finish. */
  end (seconds?: number): Promise<void>
}

/**
 * Opens a client. Every connection of Usher is opened by this function, so that with several hosts each leads to the
 * one that currently accepts writes. It connects on demand.
 * @param settings options that replace those of `options`
 * @param limit how many connections the client may open in total
 */
export function openClient (options: ClientOptions, settings: object, limit = Infinity): Client {
  const sockets = createSockets(options, limit)
  const sql = postgres({ ...options, ...settings, ...sockets.options } as never) as unknown as Sql
  return {
    sql,
    get open () { return sockets.open },
    end: (seconds = 0) => sql.end({ timeout: seconds }).then(sockets.destroy),
  }
}

/**
 * The sockets of a client. Usher keeps them, because postgres.js leaves a connecting or half-open socket open when its
 * client ends (porsager/postgres#1089, #1130).
 */
interface Sockets {
  /** Options to add to those of the client, so that it uses these sockets. */
  readonly options: object
  /** The number of sockets that are connected. */
  readonly open: number
  /** Destroys all sockets and prevents new ones. */
  destroy (): void
}

interface Host { host: string, port: number }

/**
 * Creates the sockets of a client with these options. With several hosts, sockets connect to the one that currently
 * accepts writes. The option `path` is the path of a Unix socket.
 * @param limit how many sockets the client may open in total
 */
function createSockets (clientOptions: ClientOptions, limit: number): Sockets {
  const { host: [host, ...others], port: [port], path, socket: dial, ssl } = clientOptions
  const isEncrypted = Boolean(ssl) && !dial && !path
  const sockets = new Set<Socket>()
  const opening = new Set<Socket>()
  let [remaining, destroyed] = [limit, false]
  let primary: Promise<Host> | undefined

  async function open (options: unknown): Promise<Socket> {
    if (destroyed || remaining-- <= 0) throw connectionClosed()
    const socket = await openSocket(options)
    for (const known of sockets) if (known.destroyed) sockets.delete(known)
    sockets.add(socket)
    if (destroyed) socket.on('error', () => {}).destroy()
    return socket
  }

  function openSocket (options: unknown): Socket | Promise<Socket> {
    if (dial) return dial(options)
    if (path) return connectToPath(path)
    return others.length > 0 ? openPrimary() : connectTo({ host: host!, port: port! })
  }

  function connectTo (to: Host): Socket | Promise<Socket> {
    const socket = connect(to.port, to.host)
    if (!isEncrypted) return socket
    const isDirect = clientOptions.sslnegotiation === 'direct'
    const timeoutMs = 1000 * clientOptions.connect_timeout
    opening.add(socket)
    return encrypt(socket, { host: to.host, ssl, isDirect, timeoutMs })
      .catch(openFailing).finally(() => opening.delete(socket))
  }

  // The primary is remembered until one of its connections closes. Afterwards another host may be the primary.
  async function openPrimary (): Promise<Socket> {
    const search = primary ??= findPrimary(clientOptions)
    const socket = await search.then(connectTo, openFailing)
    return socket.once('close', () => { if (primary === search) primary = undefined })
  }

  return {
    get open () { return [...sockets].filter(({ readyState }) => readyState === 'open').length },
    options: {
      socket: open, ...isEncrypted && { ssl: false }, ...others.length > 0 && only({ host: host!, port: port! }),
    },

    destroy () {
      destroyed = true
      // Something may be left to send, which then fails, after postgres.js has removed its listeners.
      for (const socket of [...sockets, ...opening]) socket.on('error', () => {}).destroy()
    },
  }
}

/**
 * Returns the host that accepts writes, which is the primary and not its standbys. All hosts are checked at the same
 * time, so that a host which does not answer causes no delay. Throws if no host accepts writes.
 */
async function findPrimary (clientOptions: ClientOptions): Promise<Host> {
  const { host: hosts, port } = clientOptions
  try {
    return await Promise.any(hosts.map((host, index) => requireWritable(clientOptions, { host, port: port[index]! })))
  } catch (error) {
    // The failure of a host that answers is more informative than that of an unreachable one.
    const { errors } = error as { errors: Failure[] }
    throw errors.find(({ code }) => code === 'READ_ONLY') ?? errors[0]
  }
}

// Returns the host, or throws if it accepts no writes. This takes a separate connection: `target_session_attrs` of
// postgres.js mistakes a standby of PostgreSQL 14 or later for a server that accepts writes.
async function requireWritable (clientOptions: ClientOptions, host: Host): Promise<Host> {
  const { primaryMs } = clientOptions
  const settings = { max: 1, connect_timeout: primaryMs / 1000, fetch_types: false, debug: false, onclose () {} }
  const { sql, end } = openClient({ ...clientOptions, ...only(host) }, settings, 1)
  try {
    const [row] = await inTime(
      sql.unsafe('show transaction_read_only'), primaryMs, () => failure('CONNECT_TIMEOUT', 'The host does not answer')
    )
    if (row!.transaction_read_only === 'on') throw failure('READ_ONLY', 'The host accepts no writes')
    return host
  } finally {
    void end()
  }
}

// A postgres.js client with several hosts never fails a statement because it cannot connect: it retries without end
// (porsager/postgres#1174).
const only = ({ host, port }: Host) => ({ host: [host], port: [port], target_session_attrs: null })

// Returns a socket that fails. If opening a socket rejected instead, postgres.js would never free its place in the
// pool.
function openFailing (failure: Failure): Socket {
  const socket = new Socket()
  setImmediate(() => socket.destroy(failure))
  return socket
}

const failure = (code: string, message: string): Failure => Object.assign(new Error(message), { code })

export const connectionClosed = (): Failure => failure('CONNECTION_CLOSED', 'The connection was lost')

import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import { connect, type ConnectionOptions } from 'node:tls'

// https://www.postgresql.org/docs/current/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SSLREQUEST
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const ACCEPTED = 'S'
const REFUSED = 'N'

export interface TlsOptions {
  /** The name or address that the certificate has to have. */
  host: string
  /** The option of postgres.js: a word of libpq, true, or options of Node.js. */
  ssl: unknown
  /** Whether TLS begins at once, as with `sslnegotiation=direct`. */
  isDirect: boolean
  timeoutMs: number
}

/**
 * Encrypts a socket to PostgreSQL. Resolves when the certificate has been verified, as far as `ssl` wants that. Rejects
 * otherwise, and if that takes too long. postgres.js can do this itself, but a process ends if such a socket is
 * destroyed while something is left to send, certificates of an address are verified against the name "localhost", and
 * what follows the server's answer is ignored.
 */
export async function encrypt (socket: Socket, { host, ssl, isDirect, timeoutMs }: TlsOptions): Promise<Socket> {
  let encrypted: Socket = socket
  const timer = setTimeout(() => {
    encrypted.destroy(failure('CONNECT_TIMEOUT', 'The server does not answer'))
  }, timeoutMs)
  try {
    if (!isDirect) {
      socket.write(SSL_REQUEST)
      const [answer] = await next(socket, 'data') as [Buffer]
      const text = answer.toString('latin1')
      if (text === REFUSED && ssl === 'prefer') return socket
      if (text !== ACCEPTED) throw failure('TLS_REFUSED', 'The server does not support TLS')
    }
    const options = typeof ssl === 'object' ? ssl as ConnectionOptions : {}
    encrypted = connect({
      socket,
      // The certificate is verified against this. An address is not sent as the name of a server.
      host,
      ...isIP(host) === 0 && { servername: host },
      ...isDirect && { ALPNProtocols: ['postgresql'] },
      ...['require', 'allow', 'prefer'].includes(ssl as string) && { rejectUnauthorized: false },
      ...options,
    })
    await next(encrypted, 'secureConnect')
    return encrypted
  } catch (error) {
    encrypted.on('error', () => {}).destroy()
    socket.on('error', () => {}).destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

// Resolves with the next event. A server that is unavailable may close the connection without an error.
function next (socket: Socket, event: string): Promise<unknown[]> {
  const closed = new AbortController()
  const onClose = () => closed.abort(failure('CONNECTION_CLOSED', 'The server has closed the connection'))
  socket.once('close', onClose)
  return once(socket, event, { signal: closed.signal })
    .catch((error: Error) => { throw closed.signal.aborted ? closed.signal.reason as Error : error })
    .finally(() => socket.off('close', onClose))
}

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code })

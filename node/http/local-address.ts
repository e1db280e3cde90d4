import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { NODE_DEADLINES } from '../process/deadlines.ts'

/**
 * Returns the URL at which browsers of this machine best reach a node: with the name `localhost` if the node listens on
 * a loopback address. Browsers treat `localhost` as secure, so that it also works with `Secure` cookies. If the name
 * also leads to another program, for example one that listens on the same port of ::1, it returns the URL with the
 * address.
 *
 * @param url the URL with the address
 * @param bound what the server is bound to
 * @param timeoutMs how long another program may take to accept a connection
 */
export async function localUrl (
  url: string, { address, port }: AddressInfo, timeoutMs = NODE_DEADLINES.localConnection
): Promise<string> {
  const host = new URL(url).hostname.replace(/^\[(.+)\]$/, '$1')
  const addresses = (await lookup('localhost', { all: true }).catch(() => [])).map(({ address }) => address)
  if (!addresses.includes(host)) return url
  // A server on `::` also gets the connections to IPv4 addresses.
  const others = address === '::' ? [] : addresses.filter((other) => other !== host)
  const taken = await Promise.all(others.map((other) => accepts(other, port, timeoutMs)))
  return taken.includes(true) ? url : `http://localhost:${port}`
}

async function accepts (host: string, port: number, timeoutMs: number): Promise<boolean> {
  const socket = connect({ host, port, signal: AbortSignal.timeout(timeoutMs) })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

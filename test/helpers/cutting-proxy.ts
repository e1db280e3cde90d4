import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A proxy in front of a server that can lose responses. */
export interface CuttingProxy {
  readonly url: string
  /** How many responses were lost so far. */
  readonly lost: number
  /**
   * Lets the server receive the next request that matches, and closes the connection as soon as the server responds.
   */
  loseResponse (request: RegExp): void
  /** Closes all connections, and forwards new ones to another server. */
  moveTo (url: string): void
}

/** Opens a TCP proxy in front of an HTTP server. It is closed when the test ends. */
export async function createCuttingProxy (t: Test, url: string): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  let target = new URL(url)
  let losing: RegExp | undefined
  let lost = 0
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    let losesThis = false
    client.on('data', (chunk) => {
      if (losing?.test(chunk.toString('latin1'))) {
        losing = undefined
        losesThis = true
      }
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (!losesThis) return void client.write(chunk)
      lost++
      client.destroy()
    })
    for (const [socket, other] of [[client, upstream], [upstream, client]] as const) {
      sockets.add(socket)
      // The 'close' event follows.
      socket.on('error', () => {})
      socket.on('close', () => {
        other.destroy()
        sockets.delete(socket)
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => { for (const socket of sockets) socket.destroy() }
  t.teardown(() => {
    server.close()
    cut()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get lost () { return lost },
    loseResponse (request) { losing = request },
    moveTo (url) {
      target = new URL(url)
      cut()
    },
  }
}

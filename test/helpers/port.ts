import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Returns a port for a program that needs to know it before it listens, or listens on it again. The port is below the
 * range of ephemeral ports, since another connection could otherwise take it in between.
 */
export async function findPort (): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(() => true, () => false)
    server.close()
    if (isFree) return port
  }
}

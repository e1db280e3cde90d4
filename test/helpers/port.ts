import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port for a node that is stopped and started again on it. Below those that a system gives to whoever connects: one of
 * these could have it meanwhile.
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

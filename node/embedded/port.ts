import { once } from 'node:events'
import { createServer } from 'node:net'

// Linux assigns ports from 32768 upwards to outgoing connections, other systems from 49152. If the port of a server were in that
// range, a client could take it during a restart, even one that is trying to connect to that server.
const [FIRST_PORT, PORTS] = [15_000, 15_000]

/** Returns a port of 127.0.0.1 that is currently free and that no system assigns to outgoing connections. */
export async function choosePort (): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    const probe = createServer().listen(port, '127.0.0.1')
    const isFree = await once(probe, 'listening').then(() => true, () => false)
    probe.close()
    if (isFree) return port
  }
}

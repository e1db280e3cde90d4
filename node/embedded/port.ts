import { once } from 'node:events'
import { createServer } from 'node:net'

// Linux takes the local ports of outgoing connections from 32768 upwards, other systems from 49152. A server that
// restarts in those ranges can find its port taken by a client, even by one that is trying to reach that server.
const [FIRST_PORT, PORTS] = [15_000, 15_000]

/** Returns a port of 127.0.0.1 that is free at the moment and that no system assigns to outgoing connections. */
export async function choosePort (): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    const probe = createServer().listen(port, '127.0.0.1')
    const isFree = await once(probe, 'listening').then(() => true, () => false)
    probe.close()
    if (isFree) return port
  }
}

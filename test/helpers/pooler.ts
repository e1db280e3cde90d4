import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A proxy in front of a database that looks like a pooler. */
export interface Pooler {
  /** The database's URL through it. */
  readonly url: string
  /** The texts of the statements that a client has sent before the one before them was answered. */
  readonly overlapping: string[]
  /** The texts of the statements whose plans PostgreSQL has been told to keep. */
  readonly prepared: string[]
}

const HEADER = 5

/**
 * Opens a proxy that reports process numbers of its own, as poolers do, until the test ends.
 * @param options.renames whether it gives prepared statements names of its own, as poolers do that keep account of them
 */
export async function createPooler (t: Test, databaseUrl: string, { renames = false } = {}): Promise<Pooler> {
  const target = new URL(databaseUrl)
  const [overlapping, prepared]: [string[], string[]] = [[], []]
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    // How many answers are to come.
    let waiting = 0
    join(client, upstream, 'startup', (type, body) => {
      const [name = '', text = ''] = body.toString('latin1').split('\0')
      if ((type === 'P' || type === 'Q') && waiting > 0) overlapping.push(type === 'P' ? text : name)
      if (type === 'P' && name !== '') prepared.push(text)
      if (type === 'Q' || type === 'S') waiting++
      if (renames) rename(type, body)
    })
    join(upstream, client, 'messages', (type, body) => {
      if (type === 'Z' && waiting > 0) waiting--
      if (type === 'K') body.writeUInt32BE(0x7fffffff, 0)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })

  function join (from: Socket, to: Socket, first: 'startup' | 'messages', onMessage: (type: string, body: Buffer) => void): void {
    let [rest, isStartup] = [Buffer.alloc(0), first === 'startup']
    sockets.add(from)
    from.on('error', () => {}).on('close', () => to.destroy()).on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      for (;;) {
        const length = isStartup ? sizeAt(0) : 1 + sizeAt(1)
        if (rest.length < length) return
        const message = rest.subarray(0, length)
        rest = rest.subarray(length)
        if (!isStartup) onMessage(String.fromCharCode(message[0]!), message.subarray(HEADER))
        isStartup = false
        to.write(message)
      }
    })
    const sizeAt = (offset: number) => rest.length < offset + 4 ? Infinity : rest.readUInt32BE(offset)
  }

  const { port } = server.address() as AddressInfo
  return { url: Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href, overlapping, prepared }
}

// Changes the first character of the name of a prepared statement: in Parse at the beginning, in Bind after the name of the portal, in
// Describe after the kind.
function rename (type: string, body: Buffer): void {
  const at = { P: 0, B: body.indexOf(0) + 1, D: 1 }[type]
  if (at !== undefined && body[at] !== 0) body[at] = 'X'.charCodeAt(0)
}

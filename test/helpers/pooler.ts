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
 * @param options.ignores the startup parameters that it does not hand on. It refuses others that it does not know, as
 * PgBouncer does
 */
export async function createPooler (
  t: Test, databaseUrl: string, { renames = false, ignores }: { renames?: boolean, ignores?: readonly string[] } = {}
): Promise<Pooler> {
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

  function join (
    from: Socket, to: Socket, first: 'startup' | 'messages', onMessage: (type: string, body: Buffer) => void
  ): void {
    let [rest, isStartup] = [Buffer.alloc(0), first === 'startup']
    sockets.add(from)
    from.on('error', () => {}).on('close', () => to.destroy()).on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      for (;;) {
        const length = isStartup ? sizeAt(0) : 1 + sizeAt(1)
        if (rest.length < length) return
        const message = rest.subarray(0, length)
        rest = rest.subarray(length)
        const isFirst = isStartup
        isStartup = false
        if (!isFirst) onMessage(String.fromCharCode(message[0]!), message.subarray(HEADER))
        const startup = isFirst && ignores ? readStartup(message, ignores) : undefined
        if (startup?.refused !== undefined) return void from.end(refusal(startup.refused))
        to.write(startup?.message ?? message)
      }
    })
    const sizeAt = (offset: number) => rest.length < offset + 4 ? Infinity : rest.readUInt32BE(offset)
  }

  const { port } = server.address() as AddressInfo
  return {
    url: Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href, overlapping, prepared,
  }
}

// Changes the first character of the name of a prepared statement: in Parse at the beginning, in Bind after the name of
// the portal, in Describe after the kind.
function rename (type: string, body: Buffer): void {
  const at = { P: 0, B: body.indexOf(0) + 1, D: 1 }[type]
  if (at !== undefined && body[at] !== 0) body[at] = 'X'.charCodeAt(0)
}

// The parameters of which PgBouncer keeps account.
const TRACKED = [
  'user', 'database', 'client_encoding', 'datestyle', 'timezone', 'standard_conforming_strings', 'application_name',
]

// Returns a startup message without the parameters to ignore, or the name of one that is refused.
function readStartup (message: Buffer, ignored: readonly string[]): { message: Buffer, refused: string | undefined } {
  const texts = message.toString('latin1', 8).split('\0')
  const pairs = texts.flatMap((name, place) => place % 2 === 0 ? [[name, texts[place + 1] ?? ''] as const] : [])
    .filter(([name]) => name !== '' && !ignored.includes(name.toLowerCase()))
  const body = Buffer.from(`${pairs.flat().map((part) => `${part}\0`).join('')}\0`, 'latin1')
  const head = Buffer.from(message.subarray(0, 8))
  head.writeUInt32BE(8 + body.length)
  const [refused] = pairs.find(([name]) => !TRACKED.includes(name.toLowerCase())) ?? []
  return { message: Buffer.concat([head, body]), refused }
}

function refusal (name: string): Buffer {
  const body = Buffer.from(`SFATAL\0C08P01\0Munsupported startup parameter: ${name}\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeUInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

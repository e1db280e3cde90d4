import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sql } from 'postgres'
import { createClient } from '../../db/driver/client.ts'
import { startEmbedded } from '../../node/embedded/server.ts'
import { NodeUnderAttack } from './node-under-attack.ts'

/** A node with its own database and folder. */
export interface Stage {
  readonly node: NodeUnderAttack
  readonly folder: string
  readonly databaseUrl: string
  /** A client of the database that uses the node's PostgreSQL schema by default. */
  readonly sql: Sql
  close (): Promise<void>
}

/** Starts PostgreSQL and the node in a temporary folder, which `close` removes. */
export async function openStage (
  { heap, settings = {} }: { heap: number, settings?: Readonly<Record<string, string>> }
): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'usher-attack-'))
  const database = await startEmbedded({ dataDir: folder })
  const node = new NodeUnderAttack({ databaseUrl: database.url, folder, heap, settings })
  const sql = createClient(database.url, { max: 2, onnotice: () => {}, connection: { search_path: 'usher' } })

  async function close (): Promise<void> {
    await node.stop()
    await sql.end({ timeout: 1 })
    await database.stop()
    await rm(folder, { recursive: true, force: true })
  }

  try {
    await node.start()
  } catch (error) {
    await close()
    throw error
  }
  return { node, folder, databaseUrl: database.url, sql, close }
}

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from 'postgres'
import type { Listener } from './listener.ts'

// Of what arrives at all: far more than it takes.
const DELIVERY_MS = 5000

/** Whether a pooler stands in between: it gives the process of its connections another number. */
export async function isPooled (listener: Listener): Promise<boolean> {
  const { 0: row, state } = await listener.run('select pg_backend_pid() as pid')
  return row!.pid !== state.pid
}

/**
 * Has a notification sent from one client to another. From another database, or by a pooler in transaction mode, none
 * would arrive, and nothing would say so: sessions that end elsewhere would live on here. Throws where it does not.
 * @param channels what the listener's messages are for
 */
export async function requireDelivery (sql: Sql, listener: Listener, channels: Map<string, { onMessage: (payload: string) => void }>): Promise<void> {
  const channel = `usher_${randomUUID()}`
  const arrived = new Promise<void>((resolve) => channels.set(channel, { onMessage: () => resolve() }))
  await listener.run(`listen "${channel}"`)
  const tooLate = delay(DELIVERY_MS, undefined, { ref: false }).then(() => { throw undelivered() })
  await Promise.race([Promise.all([sql.unsafe(`notify "${channel}"`), arrived]), tooLate])
  await listener.run(`unlisten "${channel}"`)
  channels.delete(channel)
}

const undelivered = () => new Error('usher: notificationsUrl must lead to the database itself: no notification arrives, as by a pooler in transaction mode')

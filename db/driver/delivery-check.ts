import { randomUUID } from 'node:crypto'
import { inTime } from '../../schema/runtime/in-time.ts'
import type { Listener } from './listener.ts'
import type { Pool } from './pool.ts'

interface DeliveryCheck {
  listener: Listener
  /** The channels to which the listener's messages are dispatched. */
  channels: Map<string, { onMessage: (payload: string) => void }>
  timeoutMs: number
}

/**
 * Sends a notification from `pool` and resolves when `listener` has received it. Rejects if it does not arrive within
 * `timeoutMs`, which should be far longer than a notification takes. If the listener is connected to another database,
 * or through a pooler in transaction mode, no notification ever arrives and no error occurs: this node would then keep
 * accepting sessions that other nodes have ended.
 */
export async function requireDelivery (
  pool: Pick<Pool, 'ready'>, { listener, channels, timeoutMs }: DeliveryCheck
): Promise<void> {
  const channel = `usher_${randomUUID()}`
  const arrived = new Promise<void>((resolve) => channels.set(channel, { onMessage: () => resolve() }))
  await listener.run(`listen "${channel}"`)
  await inTime(Promise.all([notify(pool, channel), arrived]), timeoutMs, undelivered)
  await listener.run(`unlisten "${channel}"`)
  channels.delete(channel)
}

const notify = async (pool: Pick<Pool, 'ready'>, channel: string) => (await pool.ready()).unsafe(`notify "${channel}"`)

const undelivered = () => new Error(
  'usher: notificationsUrl must lead to the database itself: no notification arrived. A pooler in transaction mode delivers none')

import type { EventName } from '../../schema/outbox/events.ts'
import { keyOf } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'

// The names of the events that have consumers, for each open database.
const consumed = new WeakMap<object, ReadonlySet<EventName>>()

/** Returns whether events of this name have consumers, so that statements must store them. */
export function isConsumed (db: Database, name: EventName): boolean {
  return consumed.get(keyOf(db))?.has(name) ?? false
}

/**
 * Reads which events have consumers. From now on, the changes that this process makes in the database store these
 * events.
 */
export async function loadConsumed (db: Database): Promise<void> {
  const rows = await db.selectFrom('event_consumers').select('type').distinct().execute()
  consumed.set(keyOf(db), new Set(rows.map(({ type }) => type as EventName)))
}

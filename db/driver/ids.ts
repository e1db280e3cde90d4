import { v7 } from 'uuid'
import { keyOf } from './postgres.ts'
import type { Database } from '../tables/index.ts'
import type { Clock } from './clock.ts'

const MAX_SEQUENCE = 0xFF_FF_FF_FF

interface Ids { readonly create: () => string, readonly clock: Clock }

const known = new WeakMap<object, Ids>()

/** Sets the clock of a database, from which the ids of new rows take their time. */
export function setClock (db: Database, clock: Clock): void {
  known.set(keyOf(db), { create: createIds(clock), clock })
}

/**
 * Returns the id of a new row: a UUIDv7 with the time of the database, whatever the clock of this machine says. So ids
 * are in the order of creation: those of one node always, those of several as exactly as they know that time.
 * @param db an open database or a transaction, whose clock was measured
 */
export const newId = (db: Database): string => known.get(keyOf(db))!.create()

/**
 * Returns the id of a row that was created at a time in milliseconds since 1970, so that it has its place in the order
 * of ids.
 */
export const idAt = (msecs: number): string => v7({ msecs })

/** Returns the lowest id that a row can have which was created within the last `seconds`. */
export function lowestIdWithin (db: Database, seconds: number): string {
  const { clock } = known.get(keyOf(db))!
  return v7({ msecs: Math.floor(clock.now() - seconds * 1000), seq: 0, random: new Uint8Array(16) })
}

// Ids of the same millisecond are in the order of a sequence, which begins at random and has room for 2³¹ of them.
function createIds (clock: Clock): () => string {
  let [msecs, seq] = [0, 0]
  return () => {
    const time = Math.floor(clock.rising())
    const random = crypto.getRandomValues(new Uint8Array(16))
    if (time > msecs) [msecs, seq] = [time, new DataView(random.buffer).getUint32(6) >>> 1]
    else if (seq < MAX_SEQUENCE) seq++
    else [msecs, seq] = [msecs + 1, 0]
    return v7({ msecs, seq, random })
  }
}

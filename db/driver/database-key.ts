import type { Database } from '../tables/index.ts'

/** Returns an object that an open database shares with its transactions, as the key for what is known of it. */
export const keyOf = (db: Database): object => db.getExecutor().adapter

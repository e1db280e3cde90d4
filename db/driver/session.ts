import type { TransactionConnection } from './transaction-connection.ts'

/** A connection of its own, for work that needs a database session and may take long. The caller destroys it. */
export type Session = Pick<TransactionConnection, 'run' | 'destroy'>

const openers = new WeakMap<object, () => Session>()

/** Sets how sessions beside the pools of a database are opened. */
export function setSessions (db: object, open: () => Session): void {
  openers.set(db, open)
}

/** Opens a session beside the pools. Its statements have no timeout. It connects when it runs the first statement. */
export function openSession (db: object): Session {
  return openers.get(db)!()
}

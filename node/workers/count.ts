import { availableParallelism } from 'node:os'

// What the pools of a node may open together: `max_connections` is 100 by default, and commands, backups, people and
// the primary need some of them, too.
const CONNECTIONS = 75
const [MIN_POOL_SIZE, MAX_POOL_SIZE] = [2, 10]

// Of the settings, which import this file.
interface Processes { readonly WORKERS: number | 'auto' }

/** Returns the number of processes that serve. One means that the node is a single process. */
export function workersOf ({ WORKERS }: Processes): number {
  return WORKERS === 'auto' ? availableParallelism() : WORKERS
}

/**
 * Returns the plugin's option `poolSize` for each of several workers, such that all together stay below the usual
 * `max_connections` of PostgreSQL while they are replaced, which takes one worker more. From 18 workers upwards the
 * least possible size exceeds it.
 */
export function poolSizeOf (workers: number): number {
  let size = MAX_POOL_SIZE
  while (size > MIN_POOL_SIZE && connectionsOf(workers, size) > CONNECTIONS) size--
  return size
}

/**
 * Returns how many connections the workers of a node may open together, including one worker more while they are
 * replaced.
 */
export function connectionsOf (workers: number, poolSize: number): number {
  // Statements, transactions (half as many more), and notifications.
  return (workers + 1) * (poolSize + Math.ceil(poolSize / 2) + 1)
}

/**
 * Returns how many connections a node may open together. With several processes, this includes one that replaces
 * another.
 */
export function connectionsOfNode (settings: Processes, poolSize = poolSizeOf(workersOf(settings))): number {
  const workers = workersOf(settings)
  return workers === 1 ? connectionsOf(0, poolSize) : connectionsOf(workers, poolSize)
}

/** Returns the `max_connections` that an embedded PostgreSQL needs. */
export function maxConnectionsFor (workers: number, poolSize = poolSizeOf(workers)): number {
  return Math.max(100, connectionsOf(workers, poolSize) + 100 - CONNECTIONS)
}

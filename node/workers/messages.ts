/**
 * What the primary tells a worker. `stop`: finish within seconds, because the node stops. `replace`: finish without
 * hurry, because another worker already serves.
 */
export type Order = 'stop' | 'replace'

/** Other programs, such as libraries for metrics, send messages on the same channel. */
export const messageOf = (order: Order) => ({ usher: order })

/** Returns the order in a message, or undefined for a message of others. */
export function orderIn (message: unknown): Order | undefined {
  const { usher } = (message ?? {}) as { usher?: unknown }
  return usher === 'stop' || usher === 'replace' ? usher : undefined
}

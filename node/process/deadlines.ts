/**
 * How long a node waits, in milliseconds, for what may not come, besides the deadlines of the service
 * (schema/options/deadlines.ts). `DEADLINE_FACTOR` multiplies these too, except for what a stop leaves to clients: an
 * orchestrator kills a node that takes longer to stop, on a slow machine as well, and tests keep connections open on
 * purpose.
 */
export const NODE_DEADLINES = {
  // The embedded PostgreSQL. It takes a while to start if it recovers from a crash.
  embeddedStart: 60_000,
  // A query. A healthy server can take seconds on a busy machine. If it hangs, start and stop take this time longer.
  embeddedAnswer: 10_000,
  // A fast shutdown still writes a checkpoint. A server that takes longer finishes by itself.
  embeddedStop: 30_000,
  // A process that has not recorded its shared memory is not a server: another program reuses the process number.
  embeddedRecord: 30_000,

  // Clients of the API.
  requestHead: 15_000,
  idleConnection: 60_000,
  // An upload may be large and slow.
  request: 3_600_000,

  // The mail server. The deadline `mail` of an attempt is longer than each of these.
  mailConnection: 10_000,
  mailSilence: 15_000,

  // A scraper sends its request and reads the response.
  scrape: 10_000,
  // A worker answers with its metrics. Otherwise it counts with its last known values.
  workerMetrics: 1000,
  // It does so before the first scrape is answered, when no values are known. It may still be starting.
  firstMetrics: 5000,
  // A worker sends its last metrics before it ends.
  lastMetrics: 500,

  // `localhost` accepts a connection, which shows that another program listens on it.
  localConnection: 500,
  // The routes of a configuration file are added. The start then says for what it waits.
  configRoutes: 10_000,
  // systemd reads a message.
  serviceManager: 5000,

  // A worker finishes: its clients have the time below, and then mails are sent.
  workerStop: 15_000,
  workerReplacement: 45_000,
  // All of a stop. Each step has its own deadline. Cutting one short would lose mail or leave PostgreSQL running.
  stop: 60_000,
}

export type NodeDeadlines = Readonly<typeof NODE_DEADLINES>

/** What a stop leaves to clients, in milliseconds. */
export const STOP_DEADLINES = {
  // A start in progress, for which the app can be closed only when it is over.
  start: 3000,
  // Connections that were opened and not accepted yet. As long as others keep coming, there is always one.
  pending: 500,
  // A request on its way, on a connection that was just opened or is kept alive.
  onItsWay: 500,
  // A proxy may send a request on a connection that it keeps alive at any moment, and does not repeat a POST. It closes
  // idle connections by itself before this time has passed, see docs/nginx.conf.
  proxyIdle: 2500,
  // Connections that are still open then are cut off, such as a slow upload or a response that the client does not
  // read. Mail and the database need the rest of the time that an orchestrator gives.
  connected: 3000,
  // A worker that is replaced has more time for both, because another one already serves.
  replacedIdle: 5000,
  replacedConnected: 30_000,
}

export type StopDeadlines = typeof STOP_DEADLINES

/** Returns the deadlines of a node times a factor, for a machine that is that much slower than others. */
export function multiplyNodeDeadlines (factor: number): NodeDeadlines {
  const entries = Object.entries(NODE_DEADLINES).map(([name, ms]) => [name, ms * factor])
  return Object.freeze(Object.fromEntries(entries)) as NodeDeadlines
}

import { Type, type Static, type TInteger } from '@sinclair/typebox'

const DAY_MS = 86_400_000

const ms = (usual: number, description: string): TInteger =>
  Type.Integer({ default: usual, minimum: 1, maximum: DAY_MS, description })

/**
 * The option `deadlines`: how long Usher waits, in milliseconds, for something that may not come. Whatever exceeds one
 * is given up with an error, is closed, or goes on without it. Intervals and lifetimes are not here but where they are
 * used: a slow machine does not need others.
 */
export const Deadlines = Type.Object({
  // The database. The first four keep contract 1.10: requests get a response within a second of an outage.
  databaseAnswer: ms(600, 'The database counts as unavailable if it does not answer for this long'),
  databaseAnswerMax: ms(900, 'The same if it has measured slow answers'),
  databaseStall: ms(700, 'A statement counts as stalled, at least, if others are answered'),
  writeBegin: ms(600, 'PostgreSQL begins a write within this time or not at all'),
  write: ms(10_000, 'A write that came too late is sent again'),
  databaseConnect: ms(1000, 'A connection that is not open yet counts as failed, at least'),
  databaseConnectMax: ms(5000, 'The same if slow answers were measured'),
  databasePrimary: ms(1000, 'Each of several hosts says whether it accepts writes'),
  databaseStart: ms(5000, 'Replaces the deadlines above while no requests are served'),
  databaseFailover: ms(60_000, 'A start waits for a database that accepts no writes, until a standby is promoted'),
  statement: ms(10_000, 'PostgreSQL cancels a statement'),
  idleInTransaction: ms(3000, 'PostgreSQL ends a transaction whose node does not go on'),
  transaction: ms(5000, 'A transaction waits for a connection'),
  notificationDelivery: ms(5000, 'The first notification arrives at a start'),
  replicaReplay: ms(20, 'A standby replays what a read needs, at least'),
  replicaReplayMax: ms(200, 'The same if it usually takes longer, and the primary shows what the standby has shown'),
  replicaAnswer: ms(300, 'A standby answers a read'),
  migrationLock: ms(300_000, 'A migration waits for a lock'),

  // Requests.
  batch: ms(1000, 'A read or write waits for the batch that it shares'),
  largeRead: ms(5000, 'The same for the contents of large posts'),
  postSearch: ms(20, 'A search of posts looks through another part of them'),
  idempotency: ms(1000, 'A repeated request waits for the first one'),
  graphqlOperation: ms(1000, 'A costly GraphQL operation waits for its turn'),
  userPurge: ms(3000, 'The deletion of a user waits for the removal of its rows'),
  claims: ms(5000, 'The function `claims` of the host'),
  passkey: ms(5000, 'The thread that verifies passkeys answers'),
  breachedPassword: ms(500, 'A new password is looked up among the breached ones, and accepted after it'),
  provider: ms(10_000, 'A request to a provider with which users sign in'),
  providerConnect: ms(3000, 'The connection of such a request'),
  exportStall: ms(60_000, 'The client of an export takes its next piece'),
  storage: ms(30_000, 'An S3 answers a request, or sends the next bytes of a download'),
  storageConnect: ms(5000, 'A connection to an S3 counts as failed'),
  metrics: ms(500, 'Metrics wait for what only the database knows'),
  socketInit: ms(3000, 'A socket sends `connection_init`'),

  // What runs in the background.
  backgroundTask: ms(60_000, 'A task is repeated while the database is unavailable'),
  handler: ms(30_000, 'An attempt of a handler of events'),
  mail: ms(30_000, 'An attempt of the mailer'),
  webhook: ms(15_000, 'An attempt of a webhook'),
  webhookConnect: ms(5000, 'The connection of such an attempt'),
  webhookBody: ms(1000, 'The body of its response'),
  dns: ms(2000, 'A DNS server answers, in each of two tries'),

  // The end of connections and of the app.
  socketClose: ms(1000, 'A socket answers that it closes'),
  responseCutOff: ms(3000, 'Responses continue when the app has begun to close'),
  drain: ms(1500, 'Deliveries continue when the app closes'),
}, {
  default: {}, additionalProperties: false, description: 'How long Usher waits for what may not come, in milliseconds',
})

export type Deadlines = Readonly<Static<typeof Deadlines>>

/** The defaults. */
export const DEADLINES: Deadlines = multiplyDeadlines(1)

/** Returns the defaults times a factor, for a machine that is that much slower than others. */
export function multiplyDeadlines (factor: number): Deadlines {
  const entries = Object.entries(Deadlines.properties).map(([name, schema]) =>
    [name, Math.min(Math.round(schema.default as number * factor), DAY_MS)])
  return Object.freeze(Object.fromEntries(entries)) as Deadlines
}

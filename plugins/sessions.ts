import { createHash, randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { channelOf } from '../db/channel.ts'
import { deleteSession, insertSession, listEndedSessions } from '../db/sessions.ts'
import { CLOCK_SKEW_SECONDS } from './tokens.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherSessions: ReturnType<typeof createSessions>
  }
}

function createSessions (app: FastifyInstance) {
  const { usherDatabase: { db, read, notifications }, usherOptions: { schema, accessTokenSeconds, sessionSeconds } } = app
  // The sessions that ended while a token of theirs may live, with when to forget them; oldest first.
  const ended = new Map<string, number>()
  // A token lives a little longer for a node whose clock is behind that of the node which signed it.
  const tokenSeconds = accessTokenSeconds + CLOCK_SKEW_SECONDS

  notifications.listen(channelOf(schema, 'session_ended'), (id) => remember(id), reload)

  function remember (id: string, endedAt = Date.now()): void {
    for (const [known, forgetAt] of ended) {
      if (forgetAt > Date.now()) break
      ended.delete(known)
    }
    ended.set(id, endedAt + tokenSeconds * 1000)
  }

  // Whatever was missed while the connection was down.
  async function reload (): Promise<void> {
    for (const { id, endedAt } of await listEndedSessions(db, tokenSeconds)) remember(id, endedAt.getTime())
  }

  /** Refuses sessions that a write of this node ended, from now on: the notification is still on its way. */
  function noteEnded (ids: readonly string[]): void {
    for (const id of ids) remember(id)
  }

  return {
    /** Opens a session: its id, its user's role, and the secret for its cookie, which is stored hashed. */
    async start (session: { userId: string, address: string, userAgent: string }) {
      const secret = randomBytes(32).toString('base64url')
      const expiresAt = new Date(Date.now() + sessionSeconds * 1000)
      const opened = await insertSession(db, { ...session, secretHash: hash(secret), rotationKey: randomBytes(32), expiresAt })
      return { ...opened, secret, expiresAt }
    },

    /** Ends a session, on every node, by its id or its secret; one that has ended already is no error. */
    async end (session: { id: string } | { secret: string }): Promise<void> {
      noteEnded(await deleteSession(db, 'id' in session ? session : { secretHash: hash(session.secret) }))
    },

    noteEnded,

    /**
     * Whether a session has not ended. A node that hears the database's notifications knows; one that has lost
     * touch asks. Throws `DatabaseUnavailable` where it cannot be known.
     */
    isLive: (id: string): boolean | Promise<boolean> =>
      !ended.has(id) && (notifications.connected || read.liveSession(id).then(Boolean)),
  }
}

function hash (secret: string): Uint8Array {
  return createHash('sha256').update(secret).digest()
}

/** Sessions, and the knowledge of which have ended (contract 4). */
export default fp(async function sessions (app) {
  app.decorate('usherSessions', createSessions(app))
}, { name: 'usher-sessions', dependencies: ['usher-database'] })

import Fastify from 'fastify'
import type { Test } from 'tap'
import usher, { type EventName, type UsherEvent, type UsherOptions } from '../../app.ts'
import { withUsers, type TestUsher } from './app.ts'
import { testDatabaseUrl, uniqueSchema } from './database.ts'
import { slow } from './deadlines.ts'
import { temporaryFolder } from './temporary-folder.ts'

export const admin = { email: 'admin@example.com', password: 'horse battery staple' }

export const eventNames: EventName[] = [
  'user.created', 'user.updated', 'user.deleted', 'session.started', 'session.ended', 'password.changed',
  'credential.added', 'credential.removed', 'upload.created', 'upload.updated', 'upload.deleted', 'post.created', 'post.updated',
  'post.deleted',
]

/**
 * Mounts Usher with a handler of all events, or of those of some names, before the app is ready. Returns the events so
 * far.
 */
export async function startWithEvents (
  t: Test, options: UsherOptions = {}, names = eventNames
): Promise<{ usher: TestUsher, events: UsherEvent[] }> {
  const events: UsherEvent[] = []
  const given: UsherOptions = {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema(t.name),
    uploadsDir: temporaryFolder(),
    poolSize: 4,
    admin,
    deadlines: slow,
    ...options,
  }
  const app = Fastify({ forceCloseConnections: true, pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(usher, given)
  app.usher.on(names, (event) => { events.push(event) })
  await app.ready()
  return { usher: await withUsers(app, given), events }
}

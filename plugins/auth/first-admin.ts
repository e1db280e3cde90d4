import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { hasAdmin, insertFirstAdmin } from '../../db/first-admin.ts'

/** Creates the first admin if the database has none (contract 4). */
export default fp(async function firstAdmin (app) {
  // Not before, because its event must reach handlers that the host registers after Usher.
  app.addHook('onReady', () => createFirstAdmin(app))
}, { name: 'usher-first-admin', dependencies: ['usher-database', 'usher-outbox', 'usher-passwords'] })

async function createFirstAdmin (app: FastifyInstance): Promise<void> {
  const { usherDatabase: { db }, usherPasswords: passwords, usherOptions: { admin, onFirstAdmin, onNoAdmin } } = app
  if (!admin && !onFirstAdmin && !onNoAdmin) return
  if (await hasAdmin(db)) return
  if (!admin && !onFirstAdmin) return onNoAdmin!()
  const { email, password } = admin ?? { email: 'admin@example.com', password: randomBytes(15).toString('base64url') }
  const created = await insertFirstAdmin(db, { email, passwordHash: await passwords.hash(password) })
  if (created && !admin) onFirstAdmin!({ email, password })
}

import { randomBytes } from 'node:crypto'
import fp from 'fastify-plugin'
import { hasAdmin, insertFirstAdmin } from '../../db/first-admin.ts'

/** Creates the first admin if the database has none (contract 4). */
export default fp(async function firstAdmin (app) {
  const { log, usherDatabase: { db }, usherPasswords: passwords, usherOptions: { schema, admin, onFirstAdmin, onNoAdmin } } = app
  if (!admin && !onFirstAdmin && !onNoAdmin) return
  if (await hasAdmin(db)) return warnIfIgnored()
  if (!admin && !onFirstAdmin) return onNoAdmin!()
  const { email, password } = admin ?? { email: 'admin@example.com', password: randomBytes(15).toString('base64url') }
  const created = await insertFirstAdmin(db, { email, passwordHash: await passwords.hash(password) })
  if (created && !admin) onFirstAdmin!({ email, password })
  // Another node was faster.
  if (!created) warnIfIgnored()

  function warnIfIgnored (): void {
    if (admin) log.warn({ schema }, 'the option admin is ignored, because an admin exists')
  }
}, { name: 'usher-first-admin', dependencies: ['usher-database', 'usher-passwords'] })

import type { FastifyInstance } from 'fastify'
import { PROGRAM } from '../schema/program.ts'
import { print } from './print.ts'

/** Prints that `ADMIN_EMAIL` has no effect, if the database has other admins, so that nobody tries to log in with it in vain. */
export async function warnIfAdminIgnored (app: FastifyInstance, email: string | undefined): Promise<void> {
  if (email === undefined || (await app.usher.users.find(email))?.role === 'admin') return
  print(`ADMIN_EMAIL and ADMIN_PASSWORD have no effect, because the database has another admin. To make ${email} one, run ` +
    `"${PROGRAM} admin create --email <address>", or "users promote <address>" if the user exists.`)
}

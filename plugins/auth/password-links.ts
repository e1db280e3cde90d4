import { randomBytes } from 'node:crypto'
import fastq from 'fastq'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { NIL } from 'uuid'
import type { NewAuditEntry } from '../../db/audit.ts'
import { deleteExpiredPasswordTokens, insertPasswordToken } from '../../db/password-tokens.ts'
import { findCredentials } from '../../db/users.ts'
import { NoMailer } from '../../schema/errors.ts'
import { changedMail, invitationMail, resetMail } from './password-mails.ts'
import { purgeRegularly, ROWS_A_PURGE } from '../purge.ts'
import { hashSecret } from './cookie-value.ts'

// Whoever is invited has not asked for it, and may be away.
const INVITATION_SECONDS = 7 * 86400
const PURGE_SECONDS = 600
// Requests for a link that are served behind their answers: few at once, so that they leave the others a connection.
const AT_ONCE = 2
const WAITING = 200

declare module 'fastify' {
  interface FastifyInstance {
    usherPasswordLinks: ReturnType<typeof createPasswordLinks>
  }
}

interface Recipient { id: string, email: string }

function createPasswordLinks (app: FastifyInstance) {
  const { usherDatabase: { db }, usherMailer: mailer, usherAudit: audit, usherOptions: { passwordTokenSeconds } } = app
  const queue = fastq.promise(({ email, request }: { email: string, request: FastifyRequest }) => sendLink(email, request), AT_ONCE)
  let told = false
  app.addHook('onClose', async () => { await queue.drained() })

  /**
   * Makes a link with which a user sets a password, once, and notes it in the account log. Returns the link and the
   * address to send it to, or undefined for a user who is gone.
   */
  async function createLink (userId: string, seconds: number, note: NewAuditEntry, confirm?: () => Promise<void>) {
    const token = randomBytes(32).toString('base64url')
    const to = await insertPasswordToken(db, { hash: hashSecret(token), userId, seconds }, note, confirm)
    return to === undefined ? undefined : { to, link: `${pageOf(app)}#token=${token}` }
  }

  async function sendLink (email: string, request: FastifyRequest): Promise<void> {
    const user = await findCredentials(db, email)
    // For nobody all the same but the mail: what goes on behind an answer delays the next one.
    const made = await createLink(user?.id ?? NIL, passwordTokenSeconds, audit.entry(request, { action: 'password.reset-request', userId: user?.id }))
    if (made) mailer!.send({ to: made.to, ...resetMail(made.link, passwordTokenSeconds) }, user!.id)
  }

  return {
    /**
     * Sends a link to the user of an address, where there is one: behind the answer, which so takes the same time
     * whoever has an account. Never throws: what fails is logged.
     */
    request (email: string, request: FastifyRequest): void {
      if (!mailer) {
        if (!told) app.log.warn('Links to set a password are not sent: there is no mailer')
        told = true
      } else if (queue.length() >= WAITING) {
        request.log.error('A link to set a password is not sent: too many wait')
      } else {
        // A client that does not wait for its answer has no address any more when it is noted.
        const origin = Object.create(request, { ip: { value: request.ip } }) as FastifyRequest
        queue.push({ email, request: origin }).catch((err) => request.log.error({ err }, 'A link to set a password could not be made'))
      }
    },

    /**
     * Invites a user to set a first password. Throws `NoMailer`.
     *
     * @param confirm runs before the link serves, and throws if it must not
     */
    async invite (userId: string, request: FastifyRequest, confirm: () => Promise<void>): Promise<void> {
      if (!mailer) throw new NoMailer()
      const made = await createLink(userId, INVITATION_SECONDS, audit.entry(request, { action: 'user.invite', userId }), confirm)
      if (made) mailer.send({ to: made.to, ...invitationMail(made.link, INVITATION_SECONDS) }, userId)
    },

    /** Tells a user that there is another password now. */
    tellChanged ({ id, email }: Recipient): void {
      mailer?.send({ to: email, ...changedMail(pageOf(app)) }, id)
    },
  }
}

// Never by what a request says its host is: whoever asks for the link would choose where it leads.
function pageOf (app: FastifyInstance): string {
  const { passwordUrl, publicUrl, prefix } = app.usherOptions
  return passwordUrl ?? `${publicUrl ?? (app.server.listening ? app.listeningOrigin : '')}${prefix}/set-password`
}

/** Links by mail, with which users set a password (contract 4.7). */
export default fp(async function passwordLinks (app) {
  app.decorate('usherPasswordLinks', createPasswordLinks(app))
  purgeRegularly(app, 'password links', PURGE_SECONDS, () => deleteExpiredPasswordTokens(app.usherDatabase.db, ROWS_A_PURGE))
}, { name: 'usher-password-links', dependencies: ['usher-database', 'usher-mailer', 'usher-audit'] })

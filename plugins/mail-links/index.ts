import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createVerificationLinks, type VerificationLinks } from './verification-links.ts'
import { createLinkFactory, type LinkFactory } from './mail-link.ts'
import { createPasswordLinks, type PasswordLinks } from './password-links.ts'
import { createSignUps, type SignUps } from './sign-ups.ts'
import { createUndoLinks, type UndoLinks } from './undo-links.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherMailLinks: MailLinks
  }
}

/** The links that mails contain. */
export interface MailLinks extends LinkFactory {
  readonly verificationLinks: VerificationLinks
  readonly passwordLinks: PasswordLinks
  readonly signUps: SignUps
  readonly undoLinks: UndoLinks
}

/** Links to set a password, to verify an address, to confirm a sign-up and to undo a change (contract 4.6, 11.2). */
export default fp(async function mailLinks (app) {
  const { usherOutbox: { mails }, usherAudit: audit, usherThrottle: throttle } = app
  const links = createLinkFactory(app, app.usherOptions)
  const dependencies = { ...coreOf(app), links, mails }
  app.decorate('usherMailLinks', {
    ...links,
    verificationLinks: createVerificationLinks({ ...dependencies, throttle }),
    passwordLinks: createPasswordLinks({ ...dependencies, audit, throttle }),
    signUps: createSignUps(dependencies),
    undoLinks: createUndoLinks(dependencies),
  })
}, {
  name: 'usher-mail-links',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-outbox', 'usher-audit', 'usher-throttle',
  ],
})

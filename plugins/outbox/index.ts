import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { purgeRegularly } from '../support/purge.ts'
import { createMails, type Mails } from './mails/index.ts'
import { createOutbox, type Outbox, type OutboxOptions } from './outbox.ts'

const PURGE_SECONDS = 600
const BACKLOG_SECONDS = 20

declare module 'fastify' {
  interface FastifyInstance {
    usherOutbox: Outbox & { readonly mails: Mails }
  }
}

export type { OutboxOptions }

/** Delivers events to handlers and webhooks, and mails, from an outbox in the database (contract 12.5). */
export default fp<OutboxOptions>(async function outbox (app, options) {
  const core = coreOf(app)
  const outbox = createOutbox(core, options)
  await outbox.addWebhooks()
  app.decorate('usherOutbox', { ...outbox, mails: createMails(core, outbox) })
  app.usherDatabase.startAlong(() => outbox.record())
  app.addHook('onReady', async () => outbox.start())
  purgeRegularly(app, 'outbox', PURGE_SECONDS, outbox.purge)
  purgeRegularly(app, 'large backlogs of events', BACKLOG_SECONDS, outbox.boundBacklogs)
  app.addHook('onClose', () => outbox.stop())
}, { name: 'usher-outbox', dependencies: ['usher-options', 'usher-telemetry', 'usher-database'] })

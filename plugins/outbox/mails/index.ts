import type { Core } from '../../core.ts'
import type { Outbox } from '../outbox.ts'
import { BUDGETS, createMailer, type StoringMailer } from './mailer.ts'
import { createRenderer } from './render.ts'

/** Mails: their texts, and the mailer that stores and sends them. */
export interface Mails extends ReturnType<typeof createRenderer> {
  /** Undefined if the host has no mailer: then no mail is stored. */
  readonly mailer: StoringMailer | undefined
}

/** Creates what renders, stores and sends mails. */
export function createMails (core: Core, outbox: Pick<Outbox, 'add'>): Mails {
  const { telemetry: { metrics }, options: { mailer: send } } = core
  const help = 'Mails that were not sent because the limit of their recipient is used up'
  // Other nodes may have a mailer, and dashboards expect the same metrics of all.
  const limited = metrics.counter('usher_mails_limited_total', help, { label: 'kind', values: BUDGETS })
  return { ...createRenderer(core), mailer: send && createMailer({ ...core, outbox, send, limited }) }
}

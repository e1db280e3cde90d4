import { setTimeout as pause } from 'node:timers/promises'
import fastq from 'fastq'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Mail, Mailer } from '../schema/options.ts'

// Of mails that are on their way or wait for another attempt.
const WAITING = 1000
const AT_ONCE = 4

export interface MailerOptions {
  /** Milliseconds between the attempts to send a mail; the last one bridges a greylisting. */
  pauses?: readonly number[]
  /** Milliseconds that an attempt may take. */
  attemptMs?: number
  /** Milliseconds that a stop waits for what is on its way. */
  drainMs?: number
}

declare module 'fastify' {
  interface FastifyInstance {
    usherMailer: ReturnType<typeof createMailQueue> | undefined
  }
}

function createMailQueue (app: FastifyInstance, mailer: Mailer, { pauses = [1000, 10_000, 60_000, 300_000], attemptMs = 30_000, drainMs = 1500 }: MailerOptions) {
  const queue = fastq.promise((mail: Mail) => attempt(mail), AT_ONCE)
  const pending = new Set<Promise<void>>()
  const closing = new AbortController()

  // What waits for another attempt has a last one now, while requests in flight finish.
  app.addHook('preClose', async () => closing.abort())
  app.addHook('onClose', async () => {
    // `preClose` hooks do not run where the start has failed.
    closing.abort()
    await Promise.race([Promise.all(pending), pause(drainMs, undefined, { ref: false })])
    if (pending.size > 0) app.log.error({ mails: pending.size }, 'Mails that were not sent yet are lost')
  })

  async function attempt (mail: Mail): Promise<void> {
    const done = new AbortController()
    const tooLate = pause(attemptMs, undefined, { ref: false, signal: done.signal }).then(() => { throw new Error('the mailer takes too long') })
    try {
      await Promise.race([(async () => mailer(mail))(), tooLate])
    } finally {
      tooLate.catch(() => {})
      done.abort()
    }
  }

  async function deliver (mail: Mail, userId: string): Promise<void> {
    for (let failures = 0; ; failures++) {
      const last = failures === pauses.length || closing.signal.aborted
      try {
        return await queue.push(mail)
      } catch (error) {
        const err = describe(error)
        // SMTP's word for never, such as an unknown mailbox.
        if (last || Number(err.responseCode) >= 500) return app.log.error({ err, userId }, 'A mail could not be sent')
        app.log.warn({ err, userId }, 'A mail could not be sent yet')
      }
      await pause(pauses[failures], undefined, { ref: false, signal: closing.signal }).catch(() => {})
    }
  }

  return {
    /** Sends a mail to a user, after a while if need be; returns at once and never throws: what fails is logged. */
    send (mail: Mail, userId: string): void {
      if (pending.size >= WAITING) return app.log.error({ userId }, 'A mail is not sent: too many wait')
      const delivery = deliver(mail, userId).finally(() => pending.delete(delivery))
      pending.add(delivery)
    },
  }
}

// What a mail server or a mailer says may repeat the address and the link.
function describe (thrown: unknown) {
  const error: Error & { code?: unknown, responseCode?: unknown } = thrown instanceof Error ? thrown : new Error(`${thrown}`)
  const { name, message, stack, code, responseCode } = error
  return { type: name, message: redact(message), stack: redact(`${stack}`), code, responseCode }
}

function redact (text: string): string {
  return text.replaceAll(/[^\s<>"'`:,;()[\]]+@[^\s<>"'`:,;()[\]]+/g, '[address]').replaceAll(/[\w-]{43}/g, '[token]')
}

/**
 * Mail (the option `mailer`): sent behind the answers, tried again when it fails, and drained for moments when the app
 * closes. Without a mailer there is none.
 */
export default fp<MailerOptions>(async function mailer (app, options) {
  const { mailer } = app.usherOptions
  app.decorate('usherMailer', mailer && createMailQueue(app, mailer, options))
}, { name: 'usher-mailer', dependencies: ['usher-options'] })

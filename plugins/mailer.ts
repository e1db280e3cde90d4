import { setTimeout as pause } from 'node:timers/promises'
import fastq from 'fastq'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Mail, Mailer } from '../schema/options.ts'

// Mails that are being sent or wait, for the first or another attempt.
const WAITING = 1000
const AT_ONCE = 4

export interface MailerOptions {
  /** Milliseconds between the attempts to send a mail. By default the last pause is long enough for greylisting. */
  pauses?: readonly number[]
  /** Milliseconds that an attempt may take. */
  attemptMs?: number
  /** Milliseconds that closing the app waits for mails that are being sent. */
  drainMs?: number
}

declare module 'fastify' {
  interface FastifyInstance {
    usherMailer: ReturnType<typeof createMailQueue> | undefined
  }
}

function createMailQueue (
  app: FastifyInstance, mailer: Mailer, { pauses = [1000, 10_000, 60_000, 300_000], attemptMs = 30_000, drainMs = 1500 }: MailerOptions
) {
  const queue = fastq.promise((mail: Mail) => attempt(mail), AT_ONCE)
  const pending = new Set<Promise<void>>()
  const closing = new AbortController()

  // Mails that wait for another attempt get their last one now, while requests in flight finish.
  app.addHook('preClose', async () => closing.abort())
  app.addHook('onClose', async () => {
    // `preClose` hooks do not run if the start has failed.
    closing.abort()
    await Promise.race([Promise.all(pending), pause(drainMs, undefined, { ref: false })])
    if (pending.size > 0) app.log.error({ mails: pending.size }, 'Mails are lost because they were not sent before the app closed')
  })

  async function attempt (mail: Mail): Promise<void> {
    const done = new AbortController()
    const tooLate = pause(attemptMs, undefined, { ref: false, signal: done.signal })
      .then(() => { throw new Error(`the mailer did not finish within ${attemptMs} ms`) })
    try {
      await Promise.race([(async () => mailer(mail))(), tooLate])
    } finally {
      tooLate.catch(() => {})
      done.abort()
    }
  }

  async function deliver (mail: Mail, userId: string | undefined): Promise<void> {
    for (let failures = 0; ; failures++) {
      const last = failures === pauses.length || closing.signal.aborted
      try {
        return await queue.push(mail)
      } catch (error) {
        const err = describe(error)
        // An SMTP reply of 500 or above is a permanent failure, such as an unknown mailbox.
        if (last || Number(err.responseCode) >= 500) return app.log.error({ err, userId }, 'A mail could not be sent')
        app.log.warn({ err, userId }, 'A mail could not be sent: another attempt follows')
      }
      await pause(pauses[failures], undefined, { ref: false, signal: closing.signal }).catch(() => {})
    }
  }

  return {
    /** Sends a mail in the background, in several attempts if necessary. Never throws: failures are logged with the user's id. */
    send (mail: Mail, userId?: string): void {
      if (pending.size >= WAITING) return app.log.error({ userId }, 'A mail is not sent because too many mails are waiting')
      const delivery = deliver(mail, userId).finally(() => pending.delete(delivery))
      pending.add(delivery)
    },
  }
}

// The message of a mail server or a mailer may repeat the recipient's address and the link, which must not be in a log.
function describe (thrown: unknown) {
  const error: Error & { code?: unknown, responseCode?: unknown } = thrown instanceof Error ? thrown : new Error(`${thrown}`)
  const { name, message, stack, code, responseCode } = error
  return { type: name, message: redact(message), stack: redact(`${stack}`), code, responseCode }
}

function redact (text: string): string {
  return text.replaceAll(/[^\s<>"'`:,;()[\]]+@[^\s<>"'`:,;()[\]]+/g, '[address]').replaceAll(/[\w-]{43}/g, '[token]')
}

/**
 * Sends mails with the option `mailer`. Responses do not wait for them, failed attempts are repeated, and closing the app
 * waits up to 1.5 seconds for mails that are being sent. Without the option, `usherMailer` is undefined.
 */
export default fp<MailerOptions>(async function mailer (app, options) {
  const { mailer } = app.usherOptions
  app.decorate('usherMailer', mailer && createMailQueue(app, mailer, options))
}, { name: 'usher-mailer', dependencies: ['usher-options'] })

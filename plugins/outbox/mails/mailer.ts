import { decryptWithAny, encrypt, isEncrypted } from '../../../db/sign-in/encryption.ts'
import {
  findContents, MAIL, type MailBudget, type MailLimit, type MergedNotice, type NewMail, type StoredMail,
  type StoredMailDetails,
} from '../../../db/outbox/mails.ts'
import type { Counter } from '../../../db/telemetry/metrics.ts'
import { deleteFreeLimits } from '../../../db/throttle/throttle.ts'
import type { MailContent } from '../../../schema/options/mail.ts'
import type { Mailer } from '../../../schema/options/options.ts'
import type { Core } from '../../core.ts'
import { describeError } from '../describe-error.ts'
import type { Outbox } from '../outbox.ts'
import { undelivered } from '../worker.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../../support/purge.ts'
import { createSampler } from '../../support/sampler.ts'
import type { RenderedMail } from './render.ts'
import { isRefusedForGood } from './smtp-reply.ts'

const AT_ONCE = 4
const PURGE_SECONDS = 60
// Recipients whose limits are remembered. Those that will have theirs again soonest are forgotten first.
const RECIPIENTS = 100_000
/** The kinds of limits. */
export const BUDGETS =
  ['account', 'invitation', 'organization', 'reset', 'login', 'step-up', 'request'] as const satisfies readonly MailBudget[]

// A mail is authenticated with its id, so that its content cannot be moved to a row with another recipient unnoticed.
const nameOf = (id: string) => `mail ${id}`

class Expired extends Error {}

interface PrepareOptions {
  budget?: MailBudget
  hash?: Uint8Array | undefined
  withoutLink?: RenderedMail | undefined
}

/** A notice in a mail with several of them, which is text. */
type Notice = Pick<RenderedMail, 'subject' | 'text' | 'several'>

export type StoringMailer = ReturnType<typeof createMailer>

interface Dependencies extends Core {
  outbox: Pick<Outbox, 'add'>
  /** Sends one mail. */
  send: Mailer
  /** Counts mails that are not sent because of the limit of their recipient. */
  limited: Counter
}

/**
 * Sends mails with the option `mailer`. They are stored in the outbox along with the change that causes them, so none
 * is lost with a process.
 */
export function createMailer ({
  lifecycle, database: { db, newId }, outbox, send, limited, options: { secret, formerSecret, throttle, deadlines },
}: Dependencies) {
  const { log } = lifecycle
  const limits = { verified: limitOf(throttle.verifiedMail), unverified: limitOf(throttle.mail) }
  const isNew = createSampler()
  const forget = () => deleteFreeLimits(db, { table: 'mail_limits', keep: RECIPIENTS, limit: PURGE_BATCH_SIZE })
  purgeRegularly(lifecycle, 'limits of mails', PURGE_SECONDS, forget)

  function open<Content> (id: string, content: string): Content {
    if (!isEncrypted(content)) return JSON.parse(content)
    if (secret === undefined) throw new Error('the mail is encrypted, and this node has no secret')
    return JSON.parse(decryptWithAny({ secret, formerSecret }, nameOf(id), content).text)
  }

  outbox.add({
    name: MAIL,
    types: [MAIL],
    slots: AT_ONCE,
    atClose: true,
    attemptMs: deadlines.mail,
    async deliver ({ id, data, expired, createdAt }) {
      const stored = data as StoredMail
      if (stored.isLimited) return reportLimited(stored)
      if (expired) throw new Expired('the mail has expired')
      if (stored.merged) {
        const mail = await readNotices(stored, { ...stored, ...stored.notice!, id, at: createdAt.toISOString() })
        if (!mail || stored.to === null) return undelivered
        return send({ to: stored.to, ...mail })
      }
      // Also without a recipient, for the same load.
      const [content] = await findContents(db, stored.userId, [stored])
      const mail = open<MailContent>(id, content ?? stored.content)
      if (content === undefined || stored.to === null) return undelivered
      await send({ to: stored.to, ...mail })
    },
    isFinal: (error) => error instanceof Expired || isRefusedForGood(error),
    report ({ data }, error, final) {
      const err = describeError(error)
      const fields = { err, userId: (data as StoredMail).userId }
      if (final) log.error(fields, 'A mail could not be sent, and is listed as failed')
      else log.warn(fields, 'A mail could not be sent: another attempt follows')
      return err.message
    },
  })

  // Returns one mail of a notice and those that have followed, in order, or undefined if none is to be sent.
  async function readNotices ({ userId, merged = [] }: StoredMail, first: Omit<MergedNotice, 'isLast'>) {
    const notices = [{ ...first, isLast: false }, ...merged]
    const contents = await findContents(db, userId, notices)
    const read = notices.flatMap(({ id, at, isLast }, index) =>
      contents[index] === undefined ? [] : [{ at, isLast, ...open<Notice>(id, contents[index]) }])
    return read[0] && {
      subject: read[0].several.subject,
      text: read.map(({ at, isLast, subject, text, several }) =>
        [`${timeOf(at)}: ${subject}`, text.trimEnd(), ...isLast ? [several.more] : []].join('\n\n'))
        .join('\n\n\n').concat('\n'),
    }
  }

  function seal (id: string, content: MailContent | Notice): string {
    const text = JSON.stringify(content)
    return secret === undefined ? text : encrypt(secret, nameOf(id), text)
  }

  // A flood causes one entry a minute for each user.
  function reportLimited ({ budget, userId }: StoredMail): typeof undelivered {
    limited.add(1, budget)
    if (isNew(`${budget} ${userId}`)) {
      log.warn({ kind: budget, userId }, 'A mail is not sent, because its recipient has got too many of its kind')
    }
    return undelivered
  }

  return {
    /**
     * Returns a mail to be stored in the transaction of the change that causes it. It is sent after the commit, in
     * several attempts if necessary, as long as its links work and are not void, unless the limit of its recipient is
     * used up (contract 11.5).
     * @param seconds how long its links work
     * @param options.budget which limit it counts toward
     * @param options.hash the hash of the token in its link, if it has one
     * @param options.withoutLink the content to send if the link is void by then; without it, nothing is sent
     */
    prepare (
      mail: RenderedMail, seconds: number, { budget = 'account', hash, withoutLink }: PrepareOptions = {}
    ): NewMail {
      const id = newId()
      const sealed = (toContent: (mail: RenderedMail) => MailContent | Notice) =>
        ({ content: seal(id, toContent(mail)), ...withoutLink && { withoutLink: seal(id, toContent(withoutLink)) } })
      const details: StoredMailDetails = {
        ...sealed(({ subject, text, html }) => ({ subject, text, html })),
        budget,
        token: hash === undefined ? null : Buffer.from(hash).toString('hex'),
        ...budget === 'account' && {
          notice: { name: mail.name, ...sealed(({ subject, text, several }) => ({ subject, text, several })) },
        },
        limits,
      }
      return { id, content: JSON.stringify(details), seconds }
    },
  }
}

const limitOf = ({ burst, perMinute }: { burst: number, perMinute: number }): MailLimit =>
  ({ burst, seconds: 60 / perMinute })

// The same in all languages.
const timeOf = (at: string): string => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`

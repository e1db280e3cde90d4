import fastq from 'fastq'
import { checkSignUp, deleteExpiredSignUps, insertSignUp, type NewSignUp } from '../../../db/auth/sign-ups.ts'
import { durationOf } from '../../outbox/mails/duration.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../../support/purge.ts'
import type { Caller } from '../caller.ts'
import { hashSecret } from '../cookie-value.ts'
import type { LinkDependencies } from './mail-link.ts'

/** How long a sign-up is pending. */
export const LIFETIME_SECONDS = 86400
const PURGE_SECONDS = 600
/** Sign-ups of all addresses that may be pending. Beyond it, no further one is stored. */
export const PENDING = 10_000
// Sign-ups are stored after the responses. Few are stored at once, so that they do not delay other statements.
const AT_ONCE = 2
const WAITING = 200

type Given = Omit<NewSignUp, 'hash'>

export type SignUps = ReturnType<typeof createSignUps>

/** Lets people create their own accounts by a link in a mail (contract 11.2). */
export function createSignUps ({ lifecycle, database: { db }, links, mails: { mailer, render } }: LinkDependencies) {
  const queue = fastq.promise(store, AT_ONCE)
  lifecycle.addHook('onClose', async () => { await queue.drained() })
  purgeRegularly(lifecycle, 'sign-ups', PURGE_SECONDS, () => deleteExpiredSignUps(db, PURGE_BATCH_SIZE))

  async function store ({ given, log }: { given: Given } & Pick<Caller, 'log'>): Promise<void> {
    const { hash, link } = links.create('/sign-up/confirm')
    const duration = durationOf(LIFETIME_SECONDS)
    const pages = { loginLink: links.pageOf('/login'), forgotLink: links.pageOf('/forgot-password') }
    // Both mails are prepared in any case, so that the load does not reveal which addresses have an account.
    const state = await insertSignUp(db, { ...given, hash }, { lifetime: LIFETIME_SECONDS, maxPending: PENDING }, {
      pending: mailer!.prepare(render('sign-up', { link, duration }), LIFETIME_SECONDS, { budget: 'request', hash }),
      taken: mailer!.prepare(render('sign-up-taken', pages), LIFETIME_SECONDS, { budget: 'request' }),
    })
    if (state === 'full') log.error('A sign-up is not stored because too many others are pending')
  }

  return {
    /**
     * Stores a sign-up and sends a link to confirm it, or a mail that says that the address has an account. This happens after the
     * response, which therefore takes the same time in both cases. Never throws: failures are logged.
     */
    request (given: Given, { log }: Pick<Caller, 'log'>): void {
      if (queue.length() >= WAITING) return log.error('A sign-up is not stored because too many others are waiting')
      queue.push({ given, log }).catch((err) => log.error({ err }, 'A sign-up could not be stored'))
    },

    /** Throws `InvalidInput` if a token from a mail is not that of a pending sign-up. */
    check: (token: string): Promise<void> => checkSignUp(db, hashSecret(token)),
  }
}

import { randomBytes } from 'node:crypto'
import { linkKinds } from '../../db/mail-links/kinds.ts'
import {
  getSignUp, insertSignUp, type NewSignUp, type SignUpIdentity,
} from '../../db/mail-links/sign-ups.ts'
import { createAfterResponse } from '../support/after-response.ts'
import type { Caller } from '../access/caller.ts'
import { hashSecret } from '../access/secrets.ts'
import type { LinkDependencies } from './mail-link.ts'

const { seconds, pending } = linkKinds.signUp
// The links of these are in the mailbox, and whoever reads it can confirm any of them, with a password of their own. So
// nobody keeps somebody else from signing up by using them up.
const PENDING_OF_RECIPIENT = 10

const limits = { lifetime: seconds, total: pending, ofRecipient: PENDING_OF_RECIPIENT }

type Requester = Pick<Caller, 'address' | 'log' | 'languageOf'>
type Given = Omit<NewSignUp, 'hash' | 'bindingHash'>

/** A sign-up that can be confirmed, for a client that has its token. */
export interface OpenedSignUp {
  /** The hash of the token. */
  hash: Uint8Array
  name: string
  email: string
  /** Whether the client has proved that it has sent the sign-up, so that everything in it is its own. */
  isOwn: boolean
  /** Whether the confirmation must have a password. */
  needsPassword: boolean
  /** What `confirmSignUp` compares with the sign-up. */
  bindingHash: Uint8Array | undefined
  /** The values of the host's fields, by name. */
  fields: Record<string, unknown>
  /** The identity at a provider that the user gets. */
  identity: SignUpIdentity | undefined
}

export type SignUps = ReturnType<typeof createSignUps>

/** Lets people create their own accounts by a link in a mail (contract 11.2). */
export function createSignUps ({ lifecycle, database: { db }, links, mails: { mailer, render } }: LinkDependencies) {
  const later = createAfterResponse(lifecycle, {
    full: 'A sign-up is not stored because too many others are waiting', failed: 'A sign-up could not be stored',
  })

  async function store (given: Omit<NewSignUp, 'hash'>, caller: Requester): Promise<void> {
    const { log } = caller
    const language = caller.languageOf()
    const { hash, link } = links.create('/sign-up/confirm')
    const pages = { loginLink: links.pageOf('/login'), forgotLink: links.pageOf('/forgot-password') }
    // Both mails are prepared in any case, so that the load does not reveal which addresses have an account.
    const state = await insertSignUp(db, { ...given, hash }, limits, {
      pending: mailer!.prepare(render('sign-up', language, { link, duration: seconds }), seconds, {
        budget: 'request', hash,
      }),
      taken: mailer!.prepare(render('sign-up-taken', language, pages), seconds, { budget: 'request' }),
    })
    if (state === 'full') log.error('A sign-up is not stored because too many others are pending')
    if (state === 'repeated') log.warn('A sign-up is not stored because too many for its address are pending')
  }

  return {
    /**
     * Stores a sign-up and sends a link to confirm it, or a mail that says that the address has an account. This
     * happens after the response, which therefore takes the same time in both cases. Never throws: failures are logged.
     * @returns a secret, whatever happens. Who presents it with the token of the link proves to have sent the sign-up
     */
    request (given: Given, caller: Requester): string {
      // A new one each time: another that the browser has may be that of a stranger who has used it before.
      const secret = randomBytes(32).toString('base64url')
      later(caller, () => store({ ...given, bindingHash: hashSecret(secret) }, caller))
      return secret
    },

    /**
     * Returns the pending sign-up of a token from a mail. Throws `InvalidInput` if there is none.
     * @param secret what `request` has returned to the client, if it has one
     */
    async open (token: string, secret: string | undefined): Promise<OpenedSignUp> {
      const hash = hashSecret(token)
      const { name, email, hasPassword, bindingHash: stored, fields, identity } = await getSignUp(db, hash)
      const bindingHash = secret === undefined ? undefined : hashSecret(secret)
      const isOwn = bindingHash !== undefined && Buffer.compare(bindingHash, stored) === 0
      return {
        hash,
        name,
        email,
        isOwn,
        needsPassword: !isOwn || !(hasPassword || identity),
        bindingHash,
        fields: fields ?? {},
        identity: isOwn ? identity ?? undefined : undefined,
      }
    },
  }
}

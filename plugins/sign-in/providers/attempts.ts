import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { STATE_SECONDS } from '../../../schema/sign-in/providers.ts'
import type { Core } from '../../core.ts'
import type { SigningKeys } from '../../access/signing-keys.ts'

/**
 * What somebody wants from a provider: to log in, to accept an invitation to an organisation with a new account, to
 * link an identity to an account, or to prove to be its user.
 */
export type Intent = 'login' | 'join' | 'link' | 'step-up'

/** An attempt, as it was begun. */
export interface Attempt {
  provider: string
  intent: Intent
  /** Where the browser goes at the end. */
  returnTo?: string | undefined
  /** Whose session it is for, unless somebody logs in. */
  userId?: string | undefined
  sessionId?: string | undefined
  /** The hash of the token of the invitation that is accepted, in base64url. */
  invitation?: string | undefined
}

/** What the provider gets, and what it must send back or be shown. */
export interface Secrets {
  nonce: string
  /** The verifier of PKCE (RFC 7636). */
  verifier: string
}

/** A genuine attempt that has not expired. It may have been completed. */
export interface OpenedAttempt extends Attempt, Secrets {
  /** When it was begun, in milliseconds since 1970 by the clock of the database. */
  begunAt: number
  /** What is stored when it is completed. */
  hash: Uint8Array
  expiresAt: Date
}

const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const SIGNATURE_BYTES = 64
const MAX_STATE_BYTES = 6144

/** The members of an attempt, as short as they are in an address. */
interface Stored {
  p: string
  i: Intent
  r?: string | undefined
  u?: string | undefined
  s?: string | undefined
  v?: string | undefined
  b: number
  n: string
}

export type Attempts = ReturnType<typeof createAttempts>

/**
 * Makes the `state` of logins at providers. Nothing is stored, so that a flood of starts takes no room, and each tab
 * has its own. A state is signed by the mount's signing key, so that nobody else makes one, and encrypted with a key of
 * the browser's cookie, so that no other browser completes it and the provider does not learn where the user goes. The
 * nonce and the verifier of PKCE follow from the cookie as well: who only sees the addresses knows neither.
 */
export function createAttempts (
  { database: { clock }, signingKeys }: Pick<Core, 'database'> & { signingKeys: SigningKeys }
) {
  const toSign = (signed: Uint8Array) => Buffer.concat([Buffer.from('provider\n'), signed])

  return {
    /**
     * Returns the state of an attempt, in base64url, and its secrets.
     * @param browser the secret in the cookie of the browser
     */
    create (
      browser: string, { provider, intent, returnTo, userId, sessionId, invitation }: Attempt
    ): Secrets & { state: string } {
      const n = randomBytes(16).toString('base64url')
      const stored: Stored = {
        p: provider, i: intent, r: returnTo, u: userId, s: sessionId, v: invitation, b: Math.floor(clock.now()), n,
      }
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', keyOf(browser), iv)
      const encrypted = Buffer.concat([cipher.update(JSON.stringify(stored), 'utf8'), cipher.final(), cipher.getAuthTag()])
      const key = signingKeys.current()
      const signed = Buffer.concat([Buffer.from(key.id, 'base64url'), iv, encrypted])
      const state = Buffer.concat([signed, signingKeys.sign(key, toSign(signed))]).toString('base64url')
      return { state, ...secretsOf(browser, n) }
    },

    /**
     * Returns an attempt, or undefined if it has expired, or is not one of this mount and one of the browsers. Rejects
     * with `DatabaseUnavailable` if the node does not know the key and cannot read the keys.
     * @param browsers the secrets in the cookies of the browser
     */
    async open (browsers: readonly string[], state: string): Promise<OpenedAttempt | undefined> {
      const octets = Buffer.from(state, 'base64url')
      const shortest = KEY_BYTES + IV_BYTES + TAG_BYTES + SIGNATURE_BYTES
      // The same bytes in another spelling would be another state, which could be used once more.
      if (octets.length <= shortest || octets.length > MAX_STATE_BYTES || octets.toString('base64url') !== state) {
        return undefined
      }
      const signed = octets.subarray(0, -SIGNATURE_BYTES)
      const kid = signed.subarray(0, KEY_BYTES).toString('base64url')
      const [browser, stored] = decrypt(browsers, signed.subarray(KEY_BYTES)) ?? []
      if (browser === undefined || stored === undefined) return undefined
      if (!await signingKeys.verify(kid, toSign(signed), octets.subarray(-SIGNATURE_BYTES))) return undefined
      const age = clock.now() - stored.b
      // The clocks of a server and of the standby that takes over may differ.
      if (age >= STATE_SECONDS * 1000 || age < -STATE_SECONDS * 1000) return undefined
      return {
        provider: stored.p,
        intent: stored.i,
        returnTo: stored.r,
        userId: stored.u,
        sessionId: stored.s,
        invitation: stored.v,
        begunAt: stored.b,
        // A signature of ECDSA can be changed into another valid one, so it does not count.
        hash: createHash('sha256').update(signed).digest(),
        expiresAt: new Date(stored.b + STATE_SECONDS * 1000),
        ...secretsOf(browser, stored.n),
      }
    },
  }
}

const keyOf = (browser: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', browser, '', 'usher provider state', KEY_BYTES))

function secretsOf (browser: string, attempt: string): Secrets {
  const of = (name: string) => createHmac('sha256', keyOf(browser)).update(`${name} ${attempt}`).digest('base64url')
  return { nonce: of('nonce'), verifier: of('verifier') }
}

function decrypt (browsers: readonly string[], octets: Buffer): [string, Stored] | undefined {
  const [iv, text, tag] =
    [octets.subarray(0, IV_BYTES), octets.subarray(IV_BYTES, -TAG_BYTES), octets.subarray(-TAG_BYTES)]
  for (const browser of browsers) {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(browser), iv, { authTagLength: TAG_BYTES }).setAuthTag(tag)
    const start = decipher.update(text, undefined, 'utf8')
    try {
      return [browser, JSON.parse(start + decipher.final('utf8')) as Stored]
    } catch {
      // It is that of another browser.
    }
  }
  return undefined
}

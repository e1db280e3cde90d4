import { createHash, randomBytes } from 'node:crypto'
import { CEREMONY_SECONDS } from '../../../schema/sign-in/passkeys.ts'
import type { Core } from '../../core.ts'
import type { SigningKeys } from '../../access/signing-keys.ts'

/** What a ceremony is for. A challenge of one is of no use for another. */
export type Purpose = 'registration' | 'login' | 'step-up'

/** A genuine challenge that has not expired. It may have been used. */
export interface Challenge {
  /** What is stored when it is used. */
  hash: Uint8Array
  expiresAt: Date
}

const NONCE_BYTES = 32
const TIME_BYTES = 6
const KEY_BYTES = 32
const SIGNATURE_BYTES = 64
const SIGNED_BYTES = NONCE_BYTES + TIME_BYTES + KEY_BYTES

export type Challenges = ReturnType<typeof createChallenges>

/**
 * Makes the challenges of ceremonies. They are not stored, so that a flood of them takes no room: each has random
 * bytes, when it expires, and a signature of both by the mount's signing key, which includes what the ceremony is for
 * and whose it is.
 */
export function createChallenges (
  { database: { clock }, signingKeys }: Pick<Core, 'database'> & { signingKeys: SigningKeys }
) {
  const toSign = (purpose: Purpose, binding: string, signed: Uint8Array) =>
    Buffer.concat([Buffer.from(`passkey ${purpose}\n${binding}\n`), signed])

  return {
    /**
     * Returns a challenge in base64url.
     * @param binding the session or the browser to which the ceremony belongs
     */
    create (purpose: Purpose, binding: string): string {
      const expiry = Buffer.alloc(TIME_BYTES)
      expiry.writeUIntBE(Math.floor(clock.now()) + CEREMONY_SECONDS * 1000, 0, TIME_BYTES)
      const begin = Buffer.concat([randomBytes(NONCE_BYTES), expiry])
      const key = signingKeys.current()
      const signed = Buffer.concat([begin, Buffer.from(key.id, 'base64url')])
      return Buffer.concat([signed, signingKeys.sign(key, toSign(purpose, binding, signed))]).toString('base64url')
    },

    /**
     * Returns what is known about a challenge, or undefined if it has expired or is not one of this mount for the
     * purpose and one of the bindings. Rejects with `DatabaseUnavailable` if the node does not know the key and cannot
     * read the keys.
     */
    async open (purpose: Purpose, bindings: readonly string[], challenge: string): Promise<Challenge | undefined> {
      const octets = Buffer.from(challenge, 'base64url')
      if (octets.length !== SIGNED_BYTES + SIGNATURE_BYTES) return undefined
      const expiresAt = octets.readUIntBE(NONCE_BYTES, TIME_BYTES)
      const left = expiresAt - clock.now()
      if (left <= 0 || left > 2 * CEREMONY_SECONDS * 1000) return undefined
      const signed = octets.subarray(0, SIGNED_BYTES)
      const kid = octets.subarray(NONCE_BYTES + TIME_BYTES, SIGNED_BYTES).toString('base64url')
      const signature = octets.subarray(SIGNED_BYTES)
      for (const binding of bindings) {
        if (await signingKeys.verify(kid, toSign(purpose, binding, signed), signature)) {
          return { hash: createHash('sha256').update(signed).digest(), expiresAt: new Date(expiresAt) }
        }
      }
      return undefined
    },
  }
}

import type { WriterToken } from '../../db/access/live-tokens.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import type { Actor } from '../../schema/options/policy.ts'
import type { Core } from '../core.ts'
import type { SigningKeys } from './signing-keys.ts'

export type Writers = ReturnType<typeof createWriters>

interface Dependencies extends Pick<Core, 'database'> {
  signingKeys: Pick<SigningKeys, 'find'>
}

/** Knows the token or the API key of each actor, to check it again without its text. */
export function createWriters ({ database: { clock }, signingKeys }: Dependencies) {
  const tokens = new WeakMap<Actor, WriterToken>()

  return {
    /** Records the token or the API key that an actor came from. */
    add: (actor: Actor, token: WriterToken): void => { tokens.set(actor, token) },

    /** Returns whether an actor came from a token or key of this mount, rather than of another one in the same app. */
    isOurs: (actor: Actor): boolean => tokens.has(actor),

    /**
     * Returns whether the token or key that an actor came from has not expired; its session may have ended, or the key
     * may have been deleted.
     */
    isValid (actor: Actor): boolean {
      const token = tokens.get(actor)
      return token !== undefined && token.expires > clock.now() &&
        (token.kid === '' || signingKeys.find(token.kid) !== undefined)
    },

    /** Returns the token or key that an actor came from. Throws `InvalidToken` if it is not ours. */
    tokenOf (actor: Actor): WriterToken {
      const token = tokens.get(actor)
      if (!token) throw new InvalidToken()
      return token
    },
  }
}

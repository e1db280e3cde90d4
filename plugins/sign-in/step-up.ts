import { batchCalls } from '../../db/batching/batching.ts'
import { findAuthentications } from '../../db/sign-in/step-up.ts'
import { SessionRequired } from '../../schema/sign-in/api-keys.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { MULTI_FACTOR } from '../../schema/access/sessions.ts'
import { StepUpRequired } from '../../schema/sign-in/second-factor.ts'
import type { Actor } from '../../schema/options/policy.ts'
import type { Core } from '../core.ts'
import type { Caller } from '../access/caller.ts'
import { requireSession } from '../access/policy.ts'
import type { SecondFactor } from './second-factor.ts'

interface Dependencies extends Core {
  secondFactor: SecondFactor
}

export type StepUp = ReturnType<typeof createStepUp>

/**
 * Checks that a user was authenticated recently enough for an operation that a thief of a session must not perform
 * (RFC 9470, contract 16.2). The database knows, because a token may be older than the last authentication.
 */
export function createStepUp (
  {
    database: { db }, telemetry: { batch }, secondFactor, options: { stepUpSeconds, loginMail, deadlines },
  }: Dependencies
) {
  const read = batchCalls((ids: string[]) => findAuthentications(db, ids, stepUpSeconds), {
    timeoutMs: deadlines.batch, telemetry: batch('sessions.authentication'),
  })

  async function find (caller: Caller) {
    const actor = caller.getActor()
    // A key proves nothing about its user, so no age of an authentication suffices.
    const found = await read(requireSession(actor), caller.client)
    if (!found) throw new InvalidToken()
    const hasSecondFactor = secondFactor.isOwned(found, actor)
    // Whoever has a second factor must have used it: the first one alone may be stolen.
    return { hasSecondFactor, suffices: found.isRecent && (!hasSecondFactor || found.amr.includes(MULTI_FACTOR)) }
  }

  return {
    /**
     * Throws `StepUpRequired` unless the caller was authenticated recently, with the second factor if there is one.
     * The host itself needs no authentication. Throws `SessionRequired` for an API key, `InvalidToken`,
     * `Unauthenticated`, `DatabaseUnavailable`.
     */
    async require (caller: Caller): Promise<void> {
      if (!caller.isHost && !(await find(caller)).suffices) throw new StepUpRequired(stepUpSeconds)
    },

    /** Does the same, but only for users who have a second factor, and not for API keys: `SessionRequired`. */
    async requireWithSecondFactor (caller: Caller): Promise<void> {
      if (caller.isHost) return
      const { hasSecondFactor, suffices } = await find(caller)
      if (hasSecondFactor && !suffices) throw new StepUpRequired(stepUpSeconds)
    },

    /**
     * Does the same for a change of the own address. If a mail to it logs its user in, it is a way to sign in, so that
     * all users must have been authenticated recently. `isNeeded` is called if the authentication would not suffice.
     */
    async requireForAddress (caller: Caller, isNeeded: () => Promise<boolean>): Promise<void> {
      if (caller.isHost) return
      if (caller.actor?.keyId != null) {
        if (await isNeeded()) throw new SessionRequired()
        return
      }
      const { hasSecondFactor, suffices } = await find(caller)
      if ((hasSecondFactor || loginMail) && !suffices && await isNeeded()) throw new StepUpRequired(stepUpSeconds)
    },

    /** Returns whether the caller has a second factor. Throws `InvalidToken`, `DatabaseUnavailable`. */
    hasSecondFactor: async (caller: Caller): Promise<boolean> => (await find(caller)).hasSecondFactor,

    /**
     * Throws `StepUpRequired` if the token of an actor does not say that the user was authenticated within `maxAge`
     * seconds, for routes of the host.
     * @param now milliseconds since 1970
     */
    requireToken (actor: Actor, maxAge: number, now: number): void {
      requireSession(actor)
      if (actor.authTime + maxAge < now / 1000) throw new StepUpRequired(maxAge)
    },
  }
}

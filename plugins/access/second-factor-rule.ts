import { MULTI_FACTOR } from '../../schema/access/sessions.ts'
import type { Options } from '../../schema/options/options.ts'
import type { Actor } from '../../schema/options/policy.ts'

export type SecondFactorRule = ReturnType<typeof createSecondFactorRule>

/** Says who must have a second factor, by the option `secondFactor` (contract 16.4). */
export function createSecondFactorRule ({ secondFactor }: Pick<Options, 'secondFactor'>) {
  /** Returns whether the option requires an actor to have a second factor. */
  const isRequired = ({ role }: Pick<Actor, 'role'>): boolean =>
    secondFactor === 'everyone' || (secondFactor === 'admins' && role !== 'user')

  return {
    isRequired,

    /** Returns whether an actor may only add a second factor, or confirm it, because the option requires one. */
    isMissing: (actor: Pick<Actor, 'role' | 'amr'>): boolean => isRequired(actor) && !actor.amr.includes(MULTI_FACTOR),
  }
}

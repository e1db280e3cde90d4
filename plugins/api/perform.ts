import type { FastifyError, FastifyInstance } from 'fastify'
import { InvalidToken } from '../../schema/auth.ts'
import { Forbidden } from '../../schema/errors.ts'
import type { CallOptions } from '../../schema/usher.ts'
import type { Caller } from '../auth/caller.ts'
import { translate } from '../errors.ts'

/** Runs an operation of the host, on behalf of an actor if there is one in the options. */
export type Perform = <Result>(options: CallOptions | undefined, operate: (caller: Caller) => Promise<Result>) => Promise<Result>

/**
 * Creates the function that all operations of `app.usher` run in. It rejects with the errors of the catalogue, which have a `statusCode`
 * and a `code`, and adds rejections to the account log. It throws a `TypeError` for options that are none.
 */
export function createPerform (app: FastifyInstance): Perform {
  const { usherAuth: { createCaller }, usherTokens: tokens, usherAudit: audit } = app

  function callerOf (options: CallOptions | undefined): Caller {
    if (options === undefined) return createCaller({ via: 'api' })
    if (typeof options !== 'object' || options === null || Object.keys(options).some((name) => name !== 'actor')) {
      throw new TypeError('usher: the options of an operation are an object with the member actor')
    }
    // An actor that is undefined by mistake must not have the permissions of the host.
    if (!('actor' in options)) return createCaller({ via: 'api' })
    const actor = options.actor ?? null
    if (actor && !tokens.isOurs(actor)) throw new InvalidToken()
    return createCaller({ via: 'api', actor, isHost: false })
  }

  return async (options, operate) => {
    const caller = callerOf(options)
    try {
      // As for a request, whose token is verified before anything else.
      await caller.confirm()
      return await operate(caller)
    } catch (error) {
      if (error instanceof Forbidden) audit.addRejection(caller, 403)
      throw translate(error as FastifyError)
    }
  }
}

/** Returns an id that the host has passed. Whatever is not a text is treated as an unknown id. */
export const idOf = (given: unknown): string => typeof given === 'string' ? given.toLowerCase() : ''

import type { FastifyError, FastifyInstance } from 'fastify'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { Forbidden } from '../../schema/http/errors.ts'
import type { CallOptions } from '../../schema/options/usher.ts'
import type { Caller } from '../access/caller.ts'
import { translate } from '../http/errors.ts'

type Options = CallOptions | { actor?: never } | undefined

/** Runs an operation of the host, on behalf of an actor if there is one in the options. */
export type Perform = <Result>(options: Options, operate: (caller: Caller) => Promise<Result>) => Promise<Result>

/**
 * Creates the function that all operations of `app.usher` run in. It rejects with the errors of the catalogue, which
 * have a `statusCode` and a `code`, and adds rejections to the account log. It throws a `TypeError` for options that
 * are none.
 */
export function createPerform (app: FastifyInstance): Perform {
  const { usherAccess: { createCaller, createHostCaller, rejectionOf, isOurs }, usherAudit: audit, log } = app

  function callerOf (options: Options): Caller {
    if (options === undefined) return createHostCaller({ via: 'api' })
    if (typeof options !== 'object' || options === null || Object.keys(options).some((name) => name !== 'actor')) {
      throw new TypeError('usher: the options of an operation are an object with the member actor')
    }
    // An actor that is undefined by mistake must not have the permissions of the host.
    if (!('actor' in options)) return createHostCaller({ via: 'api' })
    const actor = options.actor ?? null
    if (actor && !isOurs(actor)) throw new InvalidToken()
    return createCaller({ via: 'api', actor, address: '', userAgent: '', log })
  }

  return async function perform (options, operate) {
    const caller = callerOf(options)
    try {
      // As for a request, whose token is verified before anything else.
      await caller.confirm()
      return await operate(caller)
    } catch (error) {
      const rejection = await rejectionOf(translate(error as FastifyError), caller.actor)
      if (rejection instanceof Forbidden) audit.addRejection(caller, 403)
      throw rejection
    }
  }
}

/** Returns an id that the host has passed. Whatever is not a text is treated as an unknown id. */
export const idOf = (given: unknown): string => typeof given === 'string' ? given.toLowerCase() : ''

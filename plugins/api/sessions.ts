import type { FastifyInstance } from 'fastify'
import type { SessionOperations, StartOptions } from '../../schema/options/usher.ts'
import { clientInfoOf } from '../http/client-info.ts'
import { idOf, type Perform } from './perform.ts'

/** Creates the operations on sessions, which do what the routes do, and start sessions without a password. */
export function createSessionOperations (app: FastifyInstance, perform: Perform): SessionOperations {
  const { usherAccess: { createHostCaller, userSessions: sessions }, usherSignIn: { login } } = app

  return {
    async start (userId, options = {}) {
      const { request, amr, ...others } = options as StartOptions & object
      // An actor may not start sessions, so an option of that name is a mistake.
      if (Object.keys(others).length > 0) {
        throw new TypeError('usher: sessions.start has no other options than request and amr')
      }
      return perform(undefined, (host) => {
        const caller = request ? createHostCaller({ via: 'api', ...clientInfoOf(request) }) : host
        return login.forHost(caller, idOf(userId), { amr, protocol: request?.protocol })
      })
    },

    list: (userId, options) => perform(options, (caller) => sessions.list(caller, idOf(userId))),
    end: (id, options) => perform(options, (caller) => sessions.end(caller, idOf(id))),
    endAll: (userId, options) => perform(options, (caller) => sessions.endAll(caller, idOf(userId))),
  }
}

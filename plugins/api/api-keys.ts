import type { FastifyInstance } from 'fastify'
import { CreateApiKey } from '../../schema/sign-in/api-keys.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { ApiKeyOperations } from '../../schema/options/usher.ts'
import { idOf, type Perform } from './perform.ts'

const parse = createParser(CreateApiKey)

/** Creates the operations on API keys, which do what the routes do. */
export function createApiKeyOperations (app: FastifyInstance, perform: Perform): ApiKeyOperations {
  const { apiKeys } = app.usherSignIn

  return {
    create: (userId, { expiresAt, ...given }, options) => perform(options, (caller) => {
      // A date becomes what a request would have.
      const expiry = expiresAt === undefined ? {} : { expiresAt: JSON.parse(JSON.stringify(expiresAt)) as unknown }
      return apiKeys.create(caller, idOf(userId), parse({ ...given, ...expiry }))
    }),

    list: (userId, options) => perform(options, (caller) => apiKeys.list(caller, idOf(userId))),

    async delete (userId, id, { revokeLinks: revokesLinks = false, ...options } = {}) {
      if (typeof revokesLinks !== 'boolean') throw new TypeError('usher: revokeLinks is a boolean')
      return perform(options, (caller) => apiKeys.delete(caller, idOf(userId), idOf(id), { revokesLinks }))
    },
  }
}

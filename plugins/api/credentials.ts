import type { FastifyInstance } from 'fastify'
import type { CredentialOperations } from '../../schema/options/usher.ts'
import { idOf, type Perform } from './perform.ts'

/** Creates the operations on the ways to sign in. */
export function createCredentialOperations (app: FastifyInstance, perform: Perform): CredentialOperations {
  const { credentials, passkeys, providers } = app.usherSignIn

  return {
    list: (userId, options) => perform(options, (caller) => credentials.list(caller, idOf(userId))),

    removePasskey: (userId, id, options) =>
      perform(options, (caller) => passkeys.remove(caller, idOf(userId), idOf(id))),

    removeIdentity: (userId, id, options) =>
      perform(options, (caller) => providers.removeIdentity(caller, idOf(userId), idOf(id))),

    tokensOf: (userId, id) =>
      perform(undefined, (caller) => providers.tokensOf(caller, idOf(userId), idOf(id))),

    resetSecondFactor: (userId, options) =>
      perform(options, async (caller) => { await credentials.resetSecondFactor(caller, idOf(userId)) }),
  }
}

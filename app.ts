import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import audit from './plugins/audit.ts'
import auth from './plugins/auth/auth.ts'
import database from './plugins/database.ts'
import accounts from './plugins/users/accounts.ts'
import deletedUsers from './plugins/users/deleted-users.ts'
import docs from './plugins/docs.ts'
import errors from './plugins/errors.ts'
import events from './plugins/posts/events.ts'
import posts from './plugins/posts/posts.ts'
import firstAdmin from './plugins/auth/first-admin.ts'
import http, { addFallbacks, collectMethods } from './plugins/http.ts'
import emailLinks from './plugins/auth/email-links.ts'
import lingeringClose from './plugins/lingering-close.ts'
import mailer from './plugins/mailer.ts'
import mails from './plugins/mails/mails.ts'
import outbox from './plugins/outbox/outbox.ts'
import optionsPlugin from './plugins/options.ts'
import passwordLinks from './plugins/auth/password-links.ts'
import passwords from './plugins/auth/passwords.ts'
import responseIsolation from './plugins/response-isolation.ts'
import sessions from './plugins/auth/sessions.ts'
import signUps from './plugins/auth/sign-ups.ts'
import signingKeys from './plugins/auth/signing-keys.ts'
import storage from './plugins/uploads/storage.ts'
import undoLinks from './plugins/auth/undo-links.ts'
import users from './plugins/users/users.ts'
import throttle from './plugins/auth/throttle.ts'
import tokens from './plugins/auth/tokens.ts'
import visibility from './plugins/auth/visibility.ts'
import accountSafetyRoutes from './routes/account-safety.ts'
import auditRoutes from './routes/audit.ts'
import authRoutes from './routes/auth.ts'
import docsRoutes from './routes/docs.ts'
import graphql from './routes/graphql/index.ts'
import healthRoutes from './routes/health.ts'
import pages from './routes/account-pages/index.ts'
import { collectOperations } from './routes/account-pages/forms.ts'
import passwordRoutes from './routes/passwords.ts'
import redirect from './routes/redirect.ts'
import sessionRoutes from './routes/sessions.ts'
import signUpRoutes from './routes/sign-up.ts'
import uploadRoutes from './routes/uploads.ts'
import userRoutes from './routes/users.ts'
import wellKnown from './routes/well-known.ts'
import type { UsherOptions } from './schema/options.ts'
import { readOptions } from './schema/read-options.ts'
import { audiences, type Action, type Actor, type Policy, type ReadAction, type ReadRule, type Rule } from './schema/policy.ts'
import type { Role } from './schema/user.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Usher's decorator, under the default name. The option `decoratorName` sets another one. */
    usher: Usher
  }
  interface FastifyRequest {
    /** The user behind the request's bearer token, once `usher.authenticate` has run; null elsewhere. */
    actor: Actor | null
  }
}

export { audiences }
export type { EventData, EventHandler, EventName, FailedDelivery, UsherEvent } from './schema/events.ts'
export type { WebhookOptions } from './schema/webhooks.ts'
export type { Action, Actor, Policy, ReadAction, ReadRule, Role, Rule, UsherOptions }

/** The one decorator that a host gets. */
export interface Usher {
  /**
   * An `onRequest` hook that sets `request.actor` to the user behind the bearer token. If there is no valid token, it
   * sets `WWW-Authenticate` and throws an error with a `statusCode` of 401 and a `code` (contract 1.5). A route that
   * reads a body uses it as its `preHandler` as well, because the session may end while the body arrives (contract 1.12).
   */
  readonly authenticate: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  /**
   * Calls a handler for events of these names: at least once for each event, in order per subject, on one of the nodes that have the
   * handler (contract 12.5). Throws an `Error` if a name is unknown or taken.
   */
  readonly on: FastifyInstance['usherOutbox']['on']
  /** The deliveries of events that were given up after three days. */
  readonly events: Pick<FastifyInstance['usherOutbox'], 'failed' | 'retry'>
}

// The servers of apps whose request decorator `actor` is Usher's. Several mounts in one app share it.
const hosts = new WeakSet<object>()

/**
 * Mounts Usher: accounts, sessions, uploads and posts under `prefix`. Only the decorator and the request's `actor` are
 * visible to the host; everything else is encapsulated. Throws if an option is wrong or the database cannot be reached.
 */
const usher: FastifyPluginAsync<UsherOptions> = async (app, input) => {
  const { prefix, logLevel, logSerializers, ...options } = readOptions(input)
  decorateRequest(app)
  const { decoratorName } = options
  if (app.hasDecorator(decoratorName)) throw new Error(`usher: decoratorName ${decoratorName} is taken in this app: choose another name`)
  const mounted = Promise.withResolvers<Usher>()
  await app.register(async (scope) => {
    await scope.register(optionsPlugin, { options })
    await service(scope)
    mounted.resolve(Object.freeze({
      authenticate: scope.usherAuth.authenticate,
      on: scope.usherOutbox.on,
      events: Object.freeze({ failed: scope.usherOutbox.failed, retry: scope.usherOutbox.retry }),
    }))
  }, { prefix, logLevel, logSerializers })
  app.decorate(decoratorName, await mounted.promise)
}

function decorateRequest (app: FastifyInstance): void {
  if (!app.hasRequestDecorator('actor')) app.decorateRequest('actor', null)
  else if (!hosts.has(app.server)) throw new Error('usher: this app already has a request decorator named actor: rename it')
  hosts.add(app.server)
}

// Registers the parts of the service, in the order of their dependencies.
async function service (app: FastifyInstance): Promise<void> {
  await app.register(responseIsolation)
  await app.register(errors)
  await app.register(lingeringClose)
  await app.register(database)
  await app.register(outbox)
  await app.register(users)
  await app.register(throttle)
  await app.register(audit)
  await app.register(signingKeys)
  await app.register(tokens)
  await app.register(sessions)
  await app.register(passwords)
  await app.register(mailer)
  await app.register(mails)
  await app.register(passwordLinks)
  await app.register(signUps)
  await app.register(emailLinks)
  await app.register(undoLinks)
  await app.register(auth)
  await app.register(visibility)
  await app.register(storage)
  await app.register(deletedUsers)
  await app.register(accounts)
  await app.register(posts)
  await app.register(events)
  await app.register(firstAdmin)

  // These are sibling scopes because each parses and validates requests differently.
  await app.register(rest)
  await app.register(graphql)
}

async function rest (app: FastifyInstance): Promise<void> {
  await app.register(http)
  await app.register(docs)
  await app.register(docsRoutes)
  await app.register(healthRoutes)
  await app.register(wellKnown)
  const operations = collectOperations(app)

  await app.register(async (api) => {
    const methods = collectMethods(api)
    await api.register(authRoutes)
    await api.register(sessionRoutes)
    await api.register(passwordRoutes)
    await api.register(signUpRoutes)
    await api.register(accountSafetyRoutes)
    await api.register(userRoutes)
    await api.register(auditRoutes)
    await api.register(uploadRoutes)
    await api.register(redirect)
    addFallbacks(api, methods)
  }, { prefix: '/api' })
  await app.register(pages, { operations })
}

export default fp(usher, { name: 'fastify-usher', fastify: '5.x' })

import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import auth from './plugins/auth.ts'
import database from './plugins/database.ts'
import errors from './plugins/errors.ts'
import events from './plugins/events.ts'
import firstAdmin from './plugins/first-admin.ts'
import http, { addFallbacks, collectMethods } from './plugins/http.ts'
import passwords from './plugins/passwords.ts'
import sessions from './plugins/sessions.ts'
import storage from './plugins/storage.ts'
import tokens from './plugins/tokens.ts'
import authRoutes from './routes/auth.ts'
import graphql from './routes/graphql/index.ts'
import health from './routes/health.ts'
import redirect from './routes/redirect.ts'
import uploads from './routes/uploads.ts'
import users from './routes/users.ts'
import wellKnown from './routes/well-known.ts'
import { readOptions, type Options, type UsherOptions } from './schema/options.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherOptions: Options
  }
}

export type { UsherOptions }

/** What a host gets: its one decorator. */
export interface Usher {
  /** An `onRequest` hook: answers 401 without a valid bearer token, else sets `request.actor`. */
  readonly authenticate: FastifyInstance['usherAuth']['authenticate']
}

/**
 * Usher as a plugin: accounts, sessions, uploads and posts under `prefix`. The outer layer gives the host its
 * decorator; all the rest is encapsulated. Throws where an option is wrong or the database cannot be reached.
 */
const usher: FastifyPluginAsync<UsherOptions> = async (app, given) => {
  const options = readOptions(given)
  if (!app.hasRequestDecorator('actor')) app.decorateRequest('actor', null)
  const mounted = Promise.withResolvers<Usher>()
  await app.register(async (scope) => {
    scope.decorate('usherOptions', options)
    await service(scope)
    mounted.resolve({ authenticate: scope.usherAuth.authenticate })
  }, { prefix: options.prefix })
  app.decorate(options.decoratorName, await mounted.promise)
}

// What the service is made of, in order.
async function service (app: FastifyInstance): Promise<void> {
  await app.register(errors)
  await app.register(database)
  await app.register(tokens)
  await app.register(sessions)
  await app.register(passwords)
  await app.register(auth)
  await app.register(storage)
  await app.register(events)
  await app.register(firstAdmin)

  // Sibling scopes: each reads requests in a way of its own.
  await app.register(rest)
  await app.register(graphql)
}

async function rest (app: FastifyInstance): Promise<void> {
  await app.register(http)
  await app.register(health)
  await app.register(wellKnown)

  await app.register(async (api) => {
    const methods = collectMethods(api)
    await api.register(authRoutes)
    await api.register(users)
    await api.register(uploads)
    await api.register(redirect)
    addFallbacks(api, methods)
  }, { prefix: '/api' })
}

export default fp(usher, { name: 'fastify-usher', fastify: '5.x' })

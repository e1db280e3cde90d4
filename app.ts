import './schema/runtime/check-runtime.ts'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { explainStart } from './db/driver/start-errors.ts'
import access from './plugins/access/index.ts'
import accounts from './plugins/accounts/index.ts'
import admin from './plugins/admin/index.ts'
import { createUsher } from './plugins/api/usher.ts'
import audit from './plugins/audit/index.ts'
import { openDatabase, type OpenDatabase } from './plugins/database/database.ts'
import database from './plugins/database/index.ts'
import { migrate } from './plugins/database/migrate.ts'
import hooks from './plugins/hooks/index.ts'
import docs from './plugins/http/docs.ts'
import http from './plugins/http/index.ts'
import pipelining from './plugins/http/raw/pipelining.ts'
import requests, { addFallbacks, collectMethods } from './plugins/http/requests.ts'
import { collectRoutes, explainConflict } from './plugins/http/route-conflicts.ts'
import idempotency from './plugins/idempotency/index.ts'
import mailLinks from './plugins/mail-links/index.ts'
import optionsPlugin from './plugins/options.ts'
import outbox from './plugins/outbox/index.ts'
import signIn from './plugins/sign-in/index.ts'
import telemetry from './plugins/telemetry/index.ts'
import throttle from './plugins/throttle/index.ts'
import users from './plugins/users/index.ts'
import accountSafetyRoutes from './routes/mail-links/verification-and-undo.ts'
import adminRoutes from './routes/admin/admin.ts'
import auditRoutes from './routes/audit/audit.ts'
import authRoutes from './routes/sign-in/login.ts'
import healthRoutes from './routes/http/health.ts'
import apiKeyRoutes from './routes/sign-in/api-keys.ts'
import loginMailRoutes from './routes/sign-in/mails.ts'
import passkeyRoutes from './routes/sign-in/passkeys.ts'
import passwordRoutes from './routes/sign-in/passwords.ts'
import providerRoutes from './routes/sign-in/providers.ts'
import redirect from './routes/http/redirect.ts'
import sessionRoutes from './routes/access/sessions.ts'
import tokenRoutes from './routes/access/tokens.ts'
import settingsRoute from './routes/sign-in/settings.ts'
import signUpRoutes from './routes/mail-links/sign-ups.ts'
import secondFactorRoutes from './routes/sign-in/second-factor.ts'
import totpRoutes from './routes/sign-in/totp.ts'
import userRoutes from './routes/users/users.ts'
import wellKnown from './routes/access/well-known.ts'
import { defineConfig, type ConfigRoutes, type UsherConfig } from './schema/options/config.ts'
import type { UsherOptions } from './schema/options/options.ts'
import type { Part } from './schema/options/parts.ts'
import { readOptions } from './schema/options/read-options.ts'
import type { TokenClaims } from './schema/access/claims.ts'
import type {
  GraphqlExtension, UsherGraphQLContext, UsherLoader, UsherLoaders, UsherResolver, UsherResolvers,
  UsherSubscriptionResolver,
} from './schema/graphql/host-graphql.ts'
import {
  audiences, type Action, type Actor, type HostAction, type Policy, type ReadAction, type ReadRule, type Resource,
  type Rule,
} from './schema/options/policy.ts'
import type { Role, ShownUser, UsherUser } from './schema/users/users.ts'
import type { Usher } from './schema/options/usher.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Usher's decorator, under the default name. The option `decoratorName` sets another one. */
    usher: Usher
  }
  interface FastifyRequest {
    /**
     * The user behind the request's bearer token, once `usher.authenticate` has run; null elsewhere. The option
     * `actorName` renames it.
     */
    actor: Actor | null
  }
}

export { audiences, defineConfig, migrate }
export type * from './schema/outbox/events.ts'
export type * from './schema/options/hooks.ts'
// By name it would be an alias, which a host could not extend.
export type * from './schema/options/register.ts'
export type * from './schema/options/usher.ts'
export type * from './schema/options/metrics.ts'
export type {
  Action, Actor, ConfigRoutes, HostAction, Policy, ReadAction, ReadRule, Resource, Role, Rule, ShownUser, TokenClaims,
  UsherConfig, UsherOptions, UsherUser,
}
export type {
  GraphqlExtension, UsherGraphQLContext, UsherLoader, UsherLoaders, UsherResolver, UsherResolvers,
  UsherSubscriptionResolver,
}
export type { ProviderOptions } from './schema/options/providers.ts'
export type { WebhookOptions } from './schema/options/webhooks.ts'

// The request decorators of apps that are Usher's, by the server of the app. Several mounts in one app may share one.
const decorators = new WeakMap<object, Set<string>>()

/**
 * Mounts Usher: accounts, sessions, uploads and posts under `prefix`. Only the decorator and the request's `actor` are
 * visible to the host; everything else is encapsulated. Throws if an option is wrong or the database cannot be reached.
 */
const usher: FastifyPluginAsync<UsherOptions> = async (app, input) => {
  const { prefix, logLevel, logSerializers, ...options } = readOptions(input)
  const { decoratorName, actorName } = options
  decorateRequest(app, actorName)
  if (app.hasDecorator(decoratorName)) {
    throw new Error(`usher: decoratorName ${decoratorName} is taken in this app: choose another name`)
  }
  // It is not awaited here, see `whenOpen`. The host awaits it, as Fastify has a plugin with all that it has
  // registered.
  app.register(async (scope) => {
    await scope.register(optionsPlugin, { options })
    scope.decorate('usherHost', app)
    const rejectConflicts = collectRoutes(scope)
    // A node has registered it for all of its routes.
    if (!scope.hasPlugin('usher-pipelining')) await scope.register(pipelining)
    await scope.register(telemetry)
    scope.register(whenOpen(openDatabase(scope), async (opened) => {
      await service(scope, opened).catch((error) => { throw explainConflict(explainStart(error, options.schema)) })
      rejectConflicts(app)
      app.decorate(decoratorName, createUsher(scope))
    }))
  }, { prefix, logLevel, logSerializers })
}

/**
 * Returns a plugin that runs `work` when the database is open. Fastify awaits the promise of a plugin without a limit,
 * but gives the function of a plugin `pluginTimeout`, which is ten seconds by default. Migrations may take longer, and
 * so may another node's, for which this one waits.
 */
function whenOpen (
  opening: Promise<OpenDatabase>, work: (opened: OpenDatabase) => Promise<void>
): Promise<{ default: FastifyPluginAsync }> {
  const plugin = opening.then((opened) => ({
    default: fp(async () => work(opened), { name: 'usher-service' }),
  }))
  // Fastify gets to it after the plugins before it, and Node.js would end the process if it has failed by then.
  plugin.catch(() => {})
  return plugin
}

function decorateRequest (app: FastifyInstance, name: string): void {
  const ours = decorators.get(app.server) ?? new Set()
  if (!app.hasRequestDecorator(name)) {
    app.decorateRequest(name, null)
  } else if (!ours.has(name)) {
    throw new Error(
      `usher: this app already has a request decorator named ${name}: rename it, or choose another name with actorName`
    )
  }
  decorators.set(app.server, ours.add(name))
}

// Registers the parts of the service, in the order of their dependencies. Those that can be left out are imported only
// if they are used.
async function service (app: FastifyInstance, opened: OpenDatabase): Promise<void> {
  const has = createHas(app)
  await app.register(http)
  await app.register(hooks)
  await app.register(database, { opened })
  await app.register(outbox)
  await app.register(idempotency)
  await app.register(users)
  await app.register(audit)
  await app.register(throttle)
  await app.register(access)
  await app.register(mailLinks)
  await app.register(signIn)
  if (has('uploads')) await app.register(import('./plugins/uploads/index.ts'))
  await app.register(accounts)
  if (app.usherOptions.organizations) await app.register(import('./plugins/organizations/index.ts'))
  await app.register(admin)
  if (has('posts') || has('graphql')) await app.register(import('./plugins/streams/index.ts'))
  if (has('posts')) await app.register(import('./plugins/posts/index.ts'))

  // These are sibling scopes because each parses and validates requests differently.
  await app.register(rest)
  if (has('graphql')) await app.register(import('./routes/graphql/index.ts'))
  // The last of Usher's hooks: everything that it does for the start has been done.
  app.addHook('onReady', async () => app.usherDatabase.setServing(true))
}

async function rest (app: FastifyInstance): Promise<void> {
  const has = createHas(app)
  await app.register(requests)
  await app.register(docs)
  if (has('docs')) await app.register(import('./routes/pages/reference.ts'))
  await app.register(healthRoutes)
  await app.register(wellKnown)
  if (has('pages')) await app.register(import('./routes/pages/account/index.ts'))
  if (app.usherOptions.console) await app.register(import('./routes/pages/console/index.ts'))
  await app.register(async (api) => {
    const methods = collectMethods(api)
    await api.register(authRoutes)
    await api.register(sessionRoutes)
    if (app.usherOptions.organizations) await api.register(tokenRoutes)
    await api.register(passkeyRoutes)
    await api.register(apiKeyRoutes)
    await api.register(passwordRoutes)
    await api.register(providerRoutes)
    await api.register(secondFactorRoutes)
    await api.register(totpRoutes)
    await api.register(signUpRoutes)
    await api.register(loginMailRoutes)
    await api.register(settingsRoute)
    await api.register(accountSafetyRoutes)
    await api.register(userRoutes)
    if (app.usherOptions.organizations) await api.register(import('./routes/organizations/organizations.ts'))
    if (has('posts')) await api.register(import('./routes/posts/posts.ts'))
    await api.register(auditRoutes)
    await api.register(adminRoutes)
    if (has('uploads')) await api.register(import('./routes/uploads/uploads.ts'))
    if (has('uploads')) await api.register(import('./routes/uploads/upload-links.ts'))
    if (has('uploads')) await api.register(import('./routes/uploads/resumable-uploads.ts'))
    await api.register(redirect)
    addFallbacks(api, methods)
  }, { prefix: '/api' })
}

function createHas ({ usherOptions: { without } }: FastifyInstance) {
  return (part: Part): boolean => !without.includes(part)
}

const plugin = Object.assign(fp(usher, { name: 'fastify-usher', fastify: '5.x' }), { audiences, migrate })

export default plugin
// What `require('fastify-usher')` returns: the plugin, to which tools such as @fastify/autoload add properties.
export { plugin as 'module.exports' }

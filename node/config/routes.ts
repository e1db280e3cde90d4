import type { FastifyInstance, FastifyPluginCallback } from 'fastify'
import type { ConfigRoutes } from '../../schema/options/config.ts'
import { settlesWithin } from '../../schema/runtime/in-time.ts'
import type { NodeDeadlines } from '../process/deadlines.ts'
import type { ConfigFile } from './config-file.ts'
import { explainFailure } from './explain-failure.ts'

/**
 * Adds the routes of a configuration file beside those of Usher, in a scope of their own: hooks, parsers and decorators
 * that it adds do not concern Usher's. Throws an `Error` that names the line if it fails.
 */
export async function addRoutes (app: FastifyInstance, file: ConfigFile, deadlines: NodeDeadlines): Promise<void> {
  const { options: { routes } } = file
  if (!routes) return
  const adding = add(app, routes)
  // The node has no limit for plugins, because a migration may take long.
  void settlesWithin(adding, deadlines.configRoutes).then((isSettled) => {
    if (!isSettled) app.log.warn(`${file.name}: the start still waits for routes to return, or to call done`)
  })
  try {
    await adding
  } catch (error) {
    throw new Error(explainFailure(error, file), { cause: error })
  }
}

async function add (app: FastifyInstance, routes: ConfigRoutes): Promise<void> {
  await app.register(async (scope) => {
    // A plugin with a callback. Fastify would wait for that of others, too.
    if (routes.length > 2) await scope.register(routes as FastifyPluginCallback)
    else await routes(scope, {}, () => {})
  })
}

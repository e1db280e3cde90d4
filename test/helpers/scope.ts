import Fastify, { type FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import usher, { type UsherOptions } from '../../app.ts'

/**
 * Mounts Usher once more, with the same options and on the same schema as another app. Returns the scope of the plugin,
 * with the functions that routes use. It is closed when the test ends.
 */
export async function openScope (t: Test, options: UsherOptions): Promise<FastifyInstance> {
  const app = Fastify({ pluginTimeout: 0 })
  const scopes: FastifyInstance[] = []
  app.addHook('onRegister', (scope) => { scopes.push(scope) })
  t.teardown(() => app.close())
  await app.register(usher, options)
  await app.ready()
  return scopes.find((scope) => scope.hasDecorator('usherAccounts'))!
}

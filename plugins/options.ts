import fp from 'fastify-plugin'
import type { Options } from '../schema/options.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherOptions: Options
  }
}

/**
 * The options, under the prefix that the scope really has: the host may have mounted Usher inside a scope with a
 * prefix of its own. Throws where that is no fixed path, since answers name it.
 */
export default fp<{ options: Omit<Options, 'prefix'> }>(async function options (app, { options }) {
  const prefix = app.prefix.replace(/\/$/, '')
  if (!/^(\/[\w.~-]+)*$/.test(prefix)) throw new Error(`usher: the prefix ${prefix} must be a fixed path such as /accounts`)
  app.decorate('usherOptions', Object.freeze({ ...options, prefix }))
}, { name: 'usher-options' })

import fp from 'fastify-plugin'
import type { Options } from '../schema/options/options.ts'
import { pathOf } from '../schema/options/public-url.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherOptions: Options
  }
}

/**
 * Provides the options, with the complete prefix of the scope: the host may have mounted Usher inside a scope that has
 * a prefix, too. Throws if the prefix is not a fixed path, because responses contain it.
 */
export default fp<{ options: Omit<Options, 'prefix' | 'publicPath'> }>(async function options (app, { options }) {
  const prefix = app.prefix.replace(/\/$/, '')
  if (!/^(\/[\w.~-]+)*$/.test(prefix)) {
    throw new Error(`usher: the prefix ${prefix} must be a fixed path such as /accounts`)
  }
  const publicPath = `${pathOf(options.publicUrl)}${prefix}`
  app.decorate('usherOptions', Object.freeze({ ...options, prefix, publicPath }))
}, { name: 'usher-options' })

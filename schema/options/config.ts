import type { FastifyInstance, FastifyPluginOptions } from 'fastify'
import type { UsherOptions } from './options.ts'

/** What a node decides by itself, so that a configuration file cannot. */
type OfNode =
  'prefix' | 'sql' | 'logLevel' | 'logSerializers' | 'onFirstAdmin' | 'onNoAdmin' | 'onAdminIgnored' | 'onRoleInUse' | 'shownSettings'

/** Adds routes to a node: a plugin of Fastify. One without `done` may also return nothing. */
export type ConfigRoutes = (
  app: FastifyInstance, options: FastifyPluginOptions, done: (error?: Error) => void
) => void | Promise<void>

/** What `usher.config.ts` exports: options of the plugin, and routes of its own (contract 14.6). */
export interface UsherConfig extends Omit<UsherOptions, OfNode> {
  /**
   * Adds routes beside those of Usher. The app has Usher's decorator, and what this plugin adds to it, such as hooks,
   * applies to its own routes only.
   */
  routes?: ConfigRoutes | undefined
}

/** Returns a configuration as it is: the call gives it a type, and an editor completes its members. */
export const defineConfig = (config: UsherConfig): UsherConfig => config

// What `fastify-usher` is for a configuration file that a node loads: its functions without the service, which neither
// the primary of several workers nor most commands load.
import type { migrate as migrateUsher } from '../../app.ts'

export { audiences } from '../../schema/options/policy.ts'
export { defineConfig } from '../../schema/options/config.ts'

/** See `migrate` of the package. */
export const migrate: typeof migrateUsher = async (options) => (await import('../../app.ts')).migrate(options)

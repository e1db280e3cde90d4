// The first import of the plugin. Without it, other modules would fail with errors that do not name the cause.
import { existsSync } from 'node:fs'
import { requireNode } from './require-node.ts'

requireNode(process.versions.node)

// In a bundle, the address is that of the bundle, or missing if the bundle is CommonJS.
if (!import.meta.url || !existsSync(new URL('../graphql/schema.graphql', import.meta.url))) {
  throw new Error(
    'usher: this bundle contains fastify-usher without its files: leave it out of the bundle, as an external package'
  )
}

import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createScanner } from './scanner.ts'
import { createStorage, type Storage } from './storage.ts'
import { createUploads } from './uploads.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherUploads: Uploads
  }
}

/** The operations on uploads that the policy permits, and the storage beneath. */
export type Uploads = ReturnType<typeof createUploads> & { readonly storage: Storage }

/** Uploads: files, and the records about them (contract 5). */
export default fp(async function uploads (app) {
  const { usherHooks: hooks, usherAudit: audit, usherIdempotency: idempotency } = app
  const core = coreOf(app)
  const storage = await createStorage(core, createScanner({ ...core, hooks }))
  app.decorate('usherUploads', { ...createUploads({ ...core, storage, hooks, audit, idempotency }), storage })
  app.addHook('onReady', async () => storage.start())
  app.addHook('onClose', storage.close)
}, {
  name: 'usher-uploads',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-hooks', 'usher-audit', 'usher-idempotency',
  ],
})

import fp from 'fastify-plugin'
import errors from './errors.ts'
import emptyBody from './raw/empty-body.ts'
import lingeringClose from './raw/lingering-close.ts'
import responseIsolation from './response-isolation.ts'

/**
 * What holds for every request and response of a mount: the format of errors, isolation from the host, and how
 * connections close.
 */
export default fp(async function http (app) {
  await app.register(responseIsolation)
  await app.register(errors)
  await app.register(lingeringClose)
  // A node has registered it for all of its routes.
  if (!app.hasPlugin('usher-empty-body')) await app.register(emptyBody)
}, { name: 'usher-http' })

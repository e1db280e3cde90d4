import fp from 'fastify-plugin'
import errors from './errors.ts'
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
}, { name: 'usher-http' })

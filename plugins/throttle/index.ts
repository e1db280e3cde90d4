import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createThrottle, type Throttle } from './throttle.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherThrottle: Throttle
  }
}

/** The limits of logins, sign-ups and mails (contract 4.1). */
export default fp(async function throttle (app) {
  app.decorate('usherThrottle', createThrottle(coreOf(app)))
}, { name: 'usher-throttle', dependencies: ['usher-options', 'usher-telemetry', 'usher-database'] })

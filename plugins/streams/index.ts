import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createConnections, type Connections } from './connections.ts'
import { createEventStreams, type EventStreams } from './event-streams.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherStreams: Streams
  }
}

export interface Streams {
  readonly connections: Connections
  /** Responses with server-sent events. */
  readonly events: EventStreams
}

/** The connections that stay open, for subscriptions and events of posts (contract 7.7). */
export default fp(async function streams (app) {
  const connections = createConnections(coreOf(app))
  app.decorate('usherStreams', {
    connections, events: createEventStreams(app, { connections, access: app.usherAccess }),
  })
}, { name: 'usher-streams', dependencies: ['usher-options', 'usher-telemetry', 'usher-database', 'usher-access'] })

import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createUserReads } from './read-users.ts'
import { createUserRecords, type UserRecords } from './user-records.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherUsers: Users
  }
}

export interface Users extends ReturnType<typeof createUserReads> {
  readonly records: UserRecords
}

/** Users: their records, and the reads that the policy permits. Changes that end sessions are in `accounts/`. */
export default fp(async function users (app) {
  const core = coreOf(app)
  const records = createUserRecords(core)
  app.decorate('usherUsers', { records, ...createUserReads({ ...core, records }) })
}, { name: 'usher-users', dependencies: ['usher-options', 'usher-telemetry', 'usher-database'] })

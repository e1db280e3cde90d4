import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { DatabaseUnavailable } from '../schema/errors.ts'
import { failures } from '../schema/reply.ts'

const Health = Type.Object({ status: Type.String() }, { title: 'Health', description: 'It is so' })

/** Liveness and readiness (contract 8). */
const health: FastifyPluginAsync = async (app) => {
  const { breaker } = app.usherDatabase

  app.get('/health/live', {
    schema: { tags: ['health'], summary: 'Whether the node runs', response: { 200: Health, ...failures() } },
  }, async () => ({ status: 'ok' }))

  app.get('/health/ready', {
    schema: { tags: ['health'], summary: 'Whether the node can serve: the database answers', response: { 200: Health, ...failures() } },
  }, async () => {
    // What the heartbeat of a moment ago found out: a probe costs no statement. Without notifications the node asks the database.
    if (!breaker.closed) throw new DatabaseUnavailable()
    return { status: 'ok' }
  })
}

export default health

import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { DatabaseUnavailable } from '../schema/errors.ts'
import { failures } from '../schema/reply.ts'

const Health = Type.Object({ status: Type.String() }, { title: 'Health', description: 'The node is healthy' })

/** Adds the routes for liveness and readiness (contract 8). */
const health: FastifyPluginAsync = async (app) => {
  const { breaker } = app.usherDatabase

  app.get('/health/live', {
    schema: { tags: ['health'], summary: 'Check whether the node is running', response: { 200: Health, ...failures() } },
  }, async () => ({ status: 'ok' }))

  app.get('/health/ready', {
    schema: { tags: ['health'], summary: 'Check whether the node can reach its database', response: { 200: Health, ...failures() } },
  }, async () => {
    // Heartbeats, or probes on a node that does not receive notifications, keep the circuit breaker up to date. So this route
    // needs no statement.
    if (!breaker.closed) throw new DatabaseUnavailable()
    return { status: 'ok' }
  })
}

export default health

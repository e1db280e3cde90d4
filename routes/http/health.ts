import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import { failures } from '../../schema/http/reply.ts'
import { describeTag } from '../../plugins/http/docs.ts'

const Health = Type.Object({ status: Type.String() }, { title: 'Health', description: 'The node is healthy' })

const tags = ['health']
const schemas = {
  live: {
    tags,
    operationId: 'checkLiveness',
    summary: 'Check whether the node is running',
    response: { 200: Health, ...failures() },
  },
  ready: {
    tags,
    operationId: 'checkReadiness',
    summary: 'Check whether the node can reach its database',
    response: { 200: Health, ...failures() },
  },
}

/** Adds the routes for liveness and readiness (contract 8). */
const healthRoutes: FastifyPluginAsync = async (app) => {
  const { breaker } = app.usherDatabase
  describeTag(app, 'health', 'Liveness and readiness')

  app.get('/health/live', { schema: schemas.live }, onLive)
  app.get('/health/ready', { schema: schemas.ready }, onReady)

  async function onLive () {
    return { status: 'ok' }
  }

  // Heartbeats, or probes on a node that does not receive notifications, keep the circuit breaker up to date. So this
  // route needs no statement.
  async function onReady () {
    if (!breaker.closed) throw new DatabaseUnavailable()
    return { status: 'ok' }
  }
}

export default healthRoutes

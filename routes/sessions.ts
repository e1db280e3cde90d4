import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { isUuid } from '../db/postgres.ts'
import { forbidStoring } from '../plugins/http.ts'
import { SessionNotFound } from '../schema/errors.ts'
import { failures, NoContent } from '../schema/reply.ts'
import { SessionList, SessionParams } from '../schema/session.ts'

/** Adds the routes that list and end the actor's sessions (contract 4.4, 4.5). */
const sessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAuth: { actorOf, allow, allows, authenticate, confirm }, usherSessions: sessions, usherAudit: audit } = app
  forbidStoring(app)
  const tags = ['auth']
  const security = [{ bearer: [] }]

  app.get('/auth/sessions', {
    onRequest: allow('sessions:list'),
    schema: {
      tags,
      security,
      summary: 'List the sessions of the authenticated user, newest first',
      response: { 200: SessionList, ...failures(401, 403) },
    },
  }, async (request) => {
    const { id, sessionId } = actorOf(request)
    const rows = await sessions.list(id)
    return rows.map((row) => ({ ...row, current: row.id === sessionId }))
  })

  app.delete('/auth/sessions/:id', {
    onRequest: authenticate,
    schema: {
      tags,
      security,
      summary: 'End a session on every node',
      params: SessionParams,
      response: { 204: NoContent, ...failures(401, 404) },
    },
  }, async (request, reply) => {
    const { socket, params: { id } } = request
    const actor = actorOf(request)
    const ownerId = isUuid(id) ? await sessions.ownerOf(id) : undefined
    // The response for another user's session is the same as for one that does not exist.
    if (!ownerId || !allows(actor, 'sessions:end', ownerId)) throw new SessionNotFound()
    await confirm(actor, socket)
    await sessions.end({ id }, { ...audit.contextOf(request), action: 'session.end' })
    return reply.code(204).send(null)
  })

  app.delete('/auth/sessions', {
    onRequest: allow('sessions:end', (_, { id }) => id),
    schema: {
      tags,
      security,
      summary: 'End all sessions of the authenticated user except the current one',
      response: { 204: NoContent, ...failures(401, 403) },
    },
  }, async (request, reply) => {
    const actor = actorOf(request)
    await sessions.endAll(actor.id, actor.sessionId, audit.contextOf(request), () => confirm(actor, request.socket))
    return reply.code(204).send(null)
  })
}

export default sessionRoutes

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { isUuid } from '../db/postgres.ts'
import { forbidStoring } from '../plugins/http.ts'
import { SessionNotFound } from '../schema/errors.ts'
import { failures, NoContent } from '../schema/reply.ts'
import { SessionList, SessionParams } from '../schema/session.ts'

/** Adds the routes that list and end the actor's sessions (contract 4.4, 4.5). */
const sessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAuth: { authenticate, authorize, allows, confirm }, usherSessions: sessions, usherAudit: audit } = app
  forbidStoring(app)
  const tags = ['auth']
  const security = [{ bearer: [] }]

  app.get('/auth/sessions', {
    onRequest: [authenticate, async ({ actor }) => authorize(actor!, 'sessions:list')],
    schema: {
      tags,
      security,
      summary: 'List the sessions of the authenticated user, newest first',
      response: { 200: SessionList, ...failures(401, 403) },
    },
  }, async ({ actor }) => {
    const rows = await sessions.list(actor!.id)
    return rows.map((row) => ({ ...row, current: row.id === actor!.sessionId }))
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
    const { actor, socket, params: { id } } = request
    const ownerId = isUuid(id) ? await sessions.ownerOf(id) : undefined
    // The response for another user's session is the same as for one that does not exist.
    if (!ownerId || !allows(actor!, 'sessions:end', ownerId)) throw new SessionNotFound()
    await confirm(actor!, socket)
    await sessions.end({ id }, { ...audit.contextOf(request), action: 'session.end' })
    return reply.code(204).send(null)
  })

  app.delete('/auth/sessions', {
    onRequest: [authenticate, async ({ actor }) => authorize(actor!, 'sessions:end', actor!.id)],
    schema: {
      tags,
      security,
      summary: 'End all sessions of the authenticated user except the current one',
      response: { 204: NoContent, ...failures(401, 403) },
    },
  }, async (request, reply) => {
    const { actor, socket } = request
    await sessions.endAll(actor!.id, actor!.sessionId, audit.contextOf(request), () => confirm(actor!, socket))
    return reply.code(204).send(null)
  })
}

export default sessionRoutes

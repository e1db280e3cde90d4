import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { isUuid } from '../db/postgres.ts'
import { forbidStoring } from '../plugins/http.ts'
import { IdParams } from '../schema/params.ts'
import { failures, NoContent } from '../schema/reply.ts'
import { SessionList, SessionNotFound } from '../schema/session.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'

const tags = ['auth']
const security = [{ bearer: [] }]
const schemas = {
  list: {
    tags,
    security,
    summary: 'List the sessions of the authenticated user, newest first',
    response: { 200: SessionList, ...failures(401, 403) },
  },
  end: {
    tags,
    security,
    summary: 'End a session on every node',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 404) },
  },
  endOthers: {
    tags,
    security,
    summary: 'End all sessions of the authenticated user except the current one',
    response: { 204: NoContent, ...failures(401, 403) },
  },
}

/** Adds the routes that list and end the actor's sessions (contract 4.4, 4.5). */
const sessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAuth: { actorOf, allow, allows, authenticate, confirm }, usherSessions: sessions, usherAudit: audit } = app
  forbidStoring(app)

  app.get('/auth/sessions', { schema: schemas.list, onRequest: allow('sessions:list') }, onList)
  app.delete('/auth/sessions/:id', { schema: schemas.end, onRequest: authenticate }, onEnd)
  app.delete('/auth/sessions', { schema: schemas.endOthers, onRequest: allow('sessions:end', (_, { id }) => id) }, onEndOthers)

  async function onList (request: RequestOf<typeof schemas.list>) {
    const { id, sessionId } = actorOf(request)
    const rows = await sessions.list(id)
    return rows.map((row) => ({ ...row, current: row.id === sessionId }))
  }

  async function onEnd (request: RequestOf<typeof schemas.end>, reply: ReplyOf<typeof schemas.end>) {
    const { socket, params: { id } } = request
    const actor = actorOf(request)
    const ownerId = isUuid(id) ? await sessions.ownerOf(id) : undefined
    // The response for another user's session is the same as for one that does not exist.
    if (!ownerId || !allows(actor, 'sessions:end', ownerId)) throw new SessionNotFound()
    await confirm(actor, socket)
    await sessions.end({ id }, { ...audit.contextOf(request), action: 'session.end' })
    return reply.code(204).send(null)
  }

  async function onEndOthers (request: RequestOf<typeof schemas.endOthers>, reply: ReplyOf<typeof schemas.endOthers>) {
    const actor = actorOf(request)
    await sessions.endAll(actor.id, actor.sessionId, audit.contextOf(request), () => confirm(actor, request.socket))
    return reply.code(204).send(null)
  }
}

export default sessionRoutes

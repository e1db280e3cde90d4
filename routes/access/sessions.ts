import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { addVary } from '../../plugins/http/vary.ts'
import { IdParams, UserSessionParams } from '../../schema/http/params.ts'
import { pageTag } from '../../schema/http/entity-tag.ts'
import { failures, NoContent, NotModified } from '../../schema/http/reply.ts'
import { SessionList } from '../../schema/access/sessions.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const tags = ['auth']
const security = [{ bearer: [] }]
const schemas = {
  list: {
    tags,
    security,
    operationId: 'listSessions',
    summary: 'List the sessions of the authenticated user, newest first',
    response: { 200: SessionList, 304: NotModified, ...failures(401, 403, 412) },
  },
  end: {
    tags,
    security,
    operationId: 'endSession',
    summary: 'End a session on every node',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
  endOthers: {
    tags,
    security,
    operationId: 'endOtherSessions',
    summary: 'End all sessions of the authenticated user except the current one',
    response: { 204: NoContent, ...failures(401, 403) },
  },
  listOfUser: {
    tags: ['users'],
    security,
    operationId: 'listUserSessions',
    summary: 'List the sessions of a user, newest first',
    params: IdParams,
    response: { 200: SessionList, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  endOfUser: {
    tags: ['users'],
    security,
    operationId: 'endUserSession',
    summary: 'End a session of a user on every node',
    params: UserSessionParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
  endAllOfUser: {
    tags: ['users'],
    security,
    operationId: 'endUserSessions',
    summary: 'End all sessions of a user, the current one included',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
}

/**
 * Adds the routes that list and end the actor's sessions (contract 4.4, 4.5), and those of any user (contract 11.4).
 */
const sessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAccess: { actorOf, allow, authenticate, callerOf, requireGranted, userSessions: sessions },
  } = app
  const ownId = (request: FastifyRequest) => actorOf(request).id
  forbidStoring(app)

  app.get('/auth/sessions', {
    schema: schemas.list, exposeHeadRoute: true, onRequest: allow('sessions:list', ownId),
  }, onList)
  app.delete('/auth/sessions/:id', {
    schema: schemas.end, onRequest: [authenticate, requireGranted('sessions:end')],
  }, onEnd)
  app.delete('/auth/sessions', { schema: schemas.endOthers, onRequest: allow('sessions:end', ownId) }, onEndOthers)
  app.get(
    '/users/:id/sessions',
    { schema: schemas.listOfUser, exposeHeadRoute: true, onRequest: allow('sessions:list', idOf) },
    onListOfUser
  )
  app.delete(
    '/users/:id/sessions', { schema: schemas.endAllOfUser, onRequest: allow('sessions:end', idOf) }, onEndAllOfUser
  )
  app.delete(
    '/users/:id/sessions/:sessionId', { schema: schemas.endOfUser, onRequest: allow('sessions:end', idOf) }, onEndOfUser
  )

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    return list(actorOf(request).id, request, reply)
  }

  async function onEnd (request: RequestOf<typeof schemas.end>, reply: ReplyOf<typeof schemas.end>) {
    await sessions.end(callerOf(request), request.params.id)
    return reply.code(204).send(null)
  }

  async function onEndOthers (request: RequestOf<typeof schemas.endOthers>, reply: ReplyOf<typeof schemas.endOthers>) {
    const { id, sessionId } = actorOf(request)
    await sessions.endAll(callerOf(request), id, sessionId ?? undefined)
    return reply.code(204).send(null)
  }

  async function onListOfUser (
    request: RequestOf<typeof schemas.listOfUser>, reply: ReplyOf<typeof schemas.listOfUser>
  ) {
    return list(idOf(request), request, reply)
  }

  async function onEndOfUser (request: RequestOf<typeof schemas.endOfUser>, reply: ReplyOf<typeof schemas.endOfUser>) {
    await sessions.end(callerOf(request), request.params.sessionId, idOf(request))
    return reply.code(204).send(null)
  }

  // Sessions have no versions, and there are few of them.
  async function list (userId: string, request: FastifyRequest, reply: FastifyReply) {
    const listed = await sessions.list(callerOf(request), userId)
    addVary(reply, 'Authorization')
    return revalidate(request, reply, pageTag(listed, 'sessions 1')) ? sendNotModified(request, reply) : listed
  }

  // Unlike DELETE /auth/sessions, this also ends the session that sends the request.
  async function onEndAllOfUser (
    request: RequestOf<typeof schemas.endAllOfUser>, reply: ReplyOf<typeof schemas.endAllOfUser>
  ) {
    await sessions.endAll(callerOf(request), idOf(request))
    return reply.code(204).send(null)
  }
}

export default sessionRoutes

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { isUuid } from '../db/postgres.ts'
import type { SessionRow } from '../db/sessions.ts'
import { forbidStoring } from '../plugins/http.ts'
import { IdParams, UserSessionParams } from '../schema/params.ts'
import type { Actor } from '../schema/policy.ts'
import { failures, NoContent } from '../schema/reply.ts'
import { SessionList, SessionNotFound } from '../schema/session.ts'
import { UserNotFound } from '../schema/user.ts'
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
  listOfUser: {
    tags: ['users'],
    security,
    summary: 'List the sessions of a user, newest first',
    params: IdParams,
    response: { 200: SessionList, ...failures(401, 403, 404) },
  },
  endOfUser: {
    tags: ['users'],
    security,
    summary: 'End a session of a user on every node',
    params: UserSessionParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
  endAllOfUser: {
    tags: ['users'],
    security,
    summary: 'End all sessions of a user, the current one included',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
}

/** Adds the routes that list and end the actor's sessions (contract 4.4, 4.5), and those of any user (contract 11.4). */
const sessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAuth: { actorOf, allow, allows, authenticate, authorize, confirm }, usherSessions: sessions, usherUsers: users, usherAudit: audit,
  } = app
  forbidStoring(app)

  app.get('/auth/sessions', { schema: schemas.list, onRequest: allow('sessions:list', (_, { id }) => id) }, onList)
  app.delete('/auth/sessions/:id', { schema: schemas.end, onRequest: authenticate }, onEnd)
  app.delete('/auth/sessions', { schema: schemas.endOthers, onRequest: allow('sessions:end', (_, { id }) => id) }, onEndOthers)
  app.get('/users/:id/sessions', { schema: schemas.listOfUser, onRequest: [...allow('sessions:list', idOf), authorizeListing] }, onListOfUser)
  app.delete('/users/:id/sessions', { schema: schemas.endAllOfUser, onRequest: allow('sessions:end', idOf) }, onEndAllOfUser)
  app.delete('/users/:id/sessions/:sessionId', { schema: schemas.endOfUser, onRequest: allow('sessions:end', idOf) }, onEndOfUser)

  async function onList (request: RequestOf<typeof schemas.list>) {
    const actor = actorOf(request)
    return show(await sessions.list(actor.id), actor)
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

  async function onListOfUser (request: RequestOf<typeof schemas.listOfUser>) {
    const id = await getUserId(request)
    return show(await sessions.list(id), actorOf(request))
  }

  async function onEndOfUser (request: RequestOf<typeof schemas.endOfUser>, reply: ReplyOf<typeof schemas.endOfUser>) {
    const { socket, params: { sessionId } } = request
    const id = await getUserId(request)
    if (!isUuid(sessionId) || await sessions.ownerOf(sessionId) !== id) throw new SessionNotFound()
    await confirm(actorOf(request), socket)
    await sessions.end({ id: sessionId }, { ...audit.contextOf(request), action: 'session.end' })
    return reply.code(204).send(null)
  }

  // Unlike DELETE /auth/sessions, this does the same whoever sends it: no session of the user remains.
  async function onEndAllOfUser (request: RequestOf<typeof schemas.endAllOfUser>, reply: ReplyOf<typeof schemas.endAllOfUser>) {
    const id = await getUserId(request)
    await sessions.endAll(id, undefined, audit.contextOf(request), () => confirm(actorOf(request), request.socket))
    return reply.code(204).send(null)
  }

  async function getUserId (request: FastifyRequest): Promise<string> {
    const user = await users.read(idOf(request), request.socket)
    if (!user) throw new UserNotFound()
    return user.id
  }

  // The sessions of others have an action of their own, because a host may have a rule for `sessions:list` that ignores the owner.
  async function authorizeListing (request: FastifyRequest): Promise<void> {
    const actor = actorOf(request)
    if (idOf(request) !== actor.id) authorize(actor, 'sessions:list-of-another', idOf(request))
  }
}

const show = (rows: readonly SessionRow[], { sessionId }: Actor) => rows.map((row) => ({ ...row, current: row.id === sessionId }))

const idOf = ({ params }: FastifyRequest): string => (params as { id: string }).id.toLowerCase()

export default sessionRoutes

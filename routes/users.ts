import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { replacementOf } from '../db/user-changes.ts'
import { addJsonParser } from '../plugins/http.ts'
import { authorizeChange, authorizeCreation, writerOf } from '../plugins/users/permissions.ts'
import { IdParams } from '../schema/params.ts'
import type { ReadAction } from '../schema/policy.ts'
import { failures, NoContent } from '../schema/reply.ts'
import { CreateUser, PatchUser, ReplaceUser, User } from '../schema/user.ts'
import { withoutProtected } from '../schema/user-fields.ts'
import { MERGE_PATCH, PATCH_TYPES, requirePatchType } from './merge-patch.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'
import userListRoute from './user-list.ts'

const tags = ['users']
// Every response with a user depends on this.
const EMAIL: ReadAction[] = ['users:read-email']
const security = [{ bearer: [] }]
const schemas = {
  read: { tags, summary: 'Read a user', params: IdParams, response: { 200: User, ...failures(401, 403, 404) } },
  create: {
    tags,
    security,
    summary: 'Create a user',
    body: CreateUser,
    response: { 201: User, ...failures(400, 401, 403, 409, 413, 415) },
  },
  replace: {
    tags,
    security,
    summary: 'Replace a user',
    params: IdParams,
    body: ReplaceUser,
    response: { 200: User, ...failures(400, 401, 403, 404, 409, 413, 415, 429) },
  },
  patch: {
    tags,
    security,
    summary: 'Change a user: absent members stay as they are',
    consumes: PATCH_TYPES,
    params: IdParams,
    body: PatchUser,
    response: { 200: User, ...failures(400, 401, 403, 404, 409, 413, 415, 429) },
  },
  delete: {
    tags,
    security,
    summary: 'Delete a user with their sessions, posts and uploads',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404, 409) },
  },
}

/** Adds the routes for user records (contract 2). Their list has versions (contract 3). */
const userRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherActor: actors, usherUsers: users, usherAuth: { allow, callerOf }, usherAccounts: accounts, usherNewUsers: newUsers,
    usherVisibility: visibility, usherOptions: { prefix, userFields },
  } = app
  const path = `${prefix}/api/users`
  app.usherTag('users', 'User records')

  await app.register(userListRoute)
  app.get('/users/:id', {
    schema: { ...schemas.read, ...visibility.securityOf('users:read', EMAIL) },
    onRequest: visibility.reads('users:read', EMAIL, idOf),
  }, onRead)
  app.post('/users', { schema: schemas.create, onRequest: allow('users:create'), preValidation: [authorizeBody, ignoreProtected] }, onCreate)
  app.put('/users/:id', {
    schema: schemas.replace,
    onRequest: allow('users:replace', idOf),
    preValidation: [authorizeReplacement, ignoreProtected],
  }, onReplace)
  await app.register(async (app) => {
    addJsonParser(app, MERGE_PATCH)
    app.patch('/users/:id', {
      schema: schemas.patch,
      onRequest: [...allow('users:replace', idOf), requirePatchType],
      preValidation: [authorizePatch, ignoreProtected],
    }, onPatch)
  })
  app.delete('/users/:id', { schema: schemas.delete, onRequest: allow('users:delete', idOf) }, onDelete)

  async function onRead (request: RequestOf<typeof schemas.read>) {
    return visibility.show(await users.get(request.params.id, request.socket), actors.in(request))
  }

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    const created = await newUsers.create(callerOf(request), request.body)
    return reply.code(201).header('location', `${path}/${created.id}`).send(visibility.show(created, actors.in(request)))
  }

  async function onReplace (request: RequestOf<typeof schemas.replace>) {
    const user = await accounts.update(callerOf(request), request.params.id, replacementOf(request.body, userFields))
    return visibility.show(user, actors.in(request))
  }

  async function onPatch (request: RequestOf<typeof schemas.patch>) {
    const user = await accounts.update(callerOf(request), request.params.id, request.body)
    return visibility.show(user, actors.in(request))
  }

  async function onDelete (request: RequestOf<typeof schemas.delete>, reply: ReplyOf<typeof schemas.delete>) {
    await accounts.delete(callerOf(request), request.params.id)
    return reply.code(204).send(null)
  }

  // The operations authorize as well. This runs before the body is validated, because 403 comes before 400 (contract 1.7).
  async function authorizeBody (request: FastifyRequest): Promise<void> {
    authorizeCreation(callerOf(request), request.body)
  }

  // PUT ignores the member `disabled`.
  async function authorizeReplacement (request: FastifyRequest): Promise<void> {
    const { role } = (request.body ?? {}) as { role?: unknown }
    authorizeChange(callerOf(request), idOf(request), { role })
  }

  async function authorizePatch (request: FastifyRequest): Promise<void> {
    authorizeChange(callerOf(request), idOf(request), request.body)
  }

  // Before the validation, because the values of fields that are ignored do not matter.
  async function ignoreProtected (request: FastifyRequest): Promise<void> {
    const { body, params } = request
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return
    request.body = withoutProtected(userFields, body, writerOf(callerOf(request), (params as { id?: string }).id))
  }
}

const idOf = ({ params }: FastifyRequest): string => (params as { id: string }).id.toLowerCase()

export default userRoutes

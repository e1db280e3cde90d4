import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { describeTag } from '../../plugins/http/docs.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { addVary } from '../../plugins/http/vary.ts'
import { ApiKey, ApiKeyList, CreateApiKey, CreatedApiKey, DeleteApiKeyQuery, TooManyApiKeys } from '../../schema/sign-in/api-keys.ts'
import { pageTag } from '../../schema/http/entity-tag.ts'
import { IdParams, UserKeyParams } from '../../schema/http/params.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, NotModified, STEP_UP } from '../../schema/http/reply.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const route = { tags: ['api-keys'], security: [{ bearer: [] }] }
const schemas = {
  create: {
    ...route,
    [HEADERS]: STEP_UP,
    operationId: 'createApiKey',
    [FAILURES]: examples(new TooManyApiKeys()),
    summary: 'Create an API key of the authenticated user',
    body: CreateApiKey,
    response: { 201: CreatedApiKey, ...failures(400, 401, 403, 404, 409, 413, 415) },
  },
  list: {
    ...route,
    operationId: 'listApiKeys',
    summary: 'List the API keys of the authenticated user, newest first',
    response: { 200: ApiKeyList, 304: NotModified, ...failures(401, 403, 412) },
  },
  read: {
    ...route,
    operationId: 'getApiKey',
    summary: 'Read an API key of the authenticated user',
    params: IdParams,
    response: { 200: ApiKey, ...failures(401, 403, 404) },
  },
  delete: {
    ...route,
    operationId: 'deleteApiKey',
    summary: 'Delete an API key, which every node then rejects',
    params: IdParams,
    querystring: DeleteApiKeyQuery,
    response: { 204: NoContent, ...failures(400, 401, 403, 404) },
  },
  createOfUser: {
    ...route,
    [HEADERS]: STEP_UP,
    operationId: 'createUserApiKey',
    [FAILURES]: examples(new TooManyApiKeys()),
    summary: 'Create an API key of a service user',
    params: IdParams,
    body: CreateApiKey,
    response: { 201: CreatedApiKey, ...failures(400, 401, 403, 404, 409, 413, 415) },
  },
  listOfUser: {
    ...route,
    operationId: 'listUserApiKeys',
    summary: 'List the API keys of a user, newest first',
    params: IdParams,
    response: { 200: ApiKeyList, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  readOfUser: {
    ...route,
    operationId: 'getUserApiKey',
    summary: 'Read an API key of a user',
    params: UserKeyParams,
    response: { 200: ApiKey, ...failures(401, 403, 404) },
  },
  deleteOfUser: {
    ...route,
    operationId: 'deleteUserApiKey',
    summary: 'Delete an API key of a user, which every node then rejects',
    params: UserKeyParams,
    querystring: DeleteApiKeyQuery,
    response: { 204: NoContent, ...failures(400, 401, 403, 404) },
  },
}

/**
 * Adds the routes for API keys (contract 17.1). The response to a new key contains a secret, so none is stored for an
 * idempotency key.
 */
const apiKeyRoutes: FastifyPluginAsyncTypebox = async (app) => {
  describeTag(app, 'api-keys', 'Keys with which programs authenticate')
  const {
    usherOptions: { publicPath }, usherAccess: { actorOf, allow, callerOf }, usherSignIn: { apiKeys },
  } = app
  const ownId = (request: FastifyRequest) => actorOf(request).id
  forbidStoring(app)

  app.post('/auth/keys', { schema: schemas.create, onRequest: allow('api-keys:create', ownId) }, onCreate)
  app.get('/auth/keys', {
    schema: schemas.list, exposeHeadRoute: true, onRequest: allow('api-keys:list', ownId),
  }, onList)
  app.get('/auth/keys/:id', {
    schema: schemas.read, exposeHeadRoute: true, onRequest: allow('api-keys:list', ownId),
  }, onRead)
  app.delete('/auth/keys/:id', { schema: schemas.delete, onRequest: allow('api-keys:delete', ownId) }, onDelete)
  app.post('/users/:id/keys', { schema: schemas.createOfUser, onRequest: allow('api-keys:create', idOf) }, onCreateOfUser)
  app.get('/users/:id/keys', {
    schema: schemas.listOfUser, exposeHeadRoute: true, onRequest: allow('api-keys:list', idOf),
  }, onListOfUser)
  app.get('/users/:id/keys/:keyId', {
    schema: schemas.readOfUser, exposeHeadRoute: true, onRequest: allow('api-keys:list', idOf),
  }, onReadOfUser)
  app.delete('/users/:id/keys/:keyId', {
    schema: schemas.deleteOfUser, onRequest: allow('api-keys:delete', idOf),
  }, onDeleteOfUser)

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    const created = await apiKeys.create(callerOf(request), ownId(request), request.body)
    return reply.code(201).header('location', `${publicPath}/api/auth/keys/${created.id}`).send(created)
  }

  async function onCreateOfUser (
    request: RequestOf<typeof schemas.createOfUser>, reply: ReplyOf<typeof schemas.createOfUser>
  ) {
    const userId = idOf(request)
    const created = await apiKeys.create(callerOf(request), userId, request.body)
    return reply.code(201).header('location', `${publicPath}/api/users/${userId}/keys/${created.id}`).send(created)
  }

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    return list(ownId(request), request, reply)
  }

  async function onListOfUser (
    request: RequestOf<typeof schemas.listOfUser>, reply: ReplyOf<typeof schemas.listOfUser>
  ) {
    return list(idOf(request), request, reply)
  }

  async function onRead (request: RequestOf<typeof schemas.read>) {
    return read(ownId(request), idOf(request), request)
  }

  async function onReadOfUser (request: RequestOf<typeof schemas.readOfUser>) {
    return read(idOf(request), request.params.keyId.toLowerCase(), request)
  }

  async function onDelete (request: RequestOf<typeof schemas.delete>, reply: ReplyOf<typeof schemas.delete>) {
    await apiKeys.delete(callerOf(request), ownId(request), idOf(request), revocationOf(request))
    return reply.code(204).send(null)
  }

  async function onDeleteOfUser (
    request: RequestOf<typeof schemas.deleteOfUser>, reply: ReplyOf<typeof schemas.deleteOfUser>
  ) {
    await apiKeys.delete(callerOf(request), idOf(request), request.params.keyId.toLowerCase(), revocationOf(request))
    return reply.code(204).send(null)
  }

  const revocationOf = ({ query: { revokeLinks: revokesLinks } }: { query: { revokeLinks?: boolean } }) =>
    ({ ...revokesLinks !== undefined && { revokesLinks } })

  async function read (userId: string, id: string, request: FastifyRequest) {
    return apiKeys.get(callerOf(request), userId, id)
  }

  // Keys have no versions, and there are few of them.
  async function list (userId: string, request: FastifyRequest, reply: FastifyReply) {
    const listed = await apiKeys.list(callerOf(request), userId)
    addVary(reply, 'Authorization')
    return revalidate(request, reply, pageTag(listed, 'api-keys 1')) ? sendNotModified(request, reply) : listed
  }
}

export default apiKeyRoutes

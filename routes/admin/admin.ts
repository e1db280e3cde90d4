import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { describeTag } from '../../plugins/http/docs.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import {
  DeliveryList, ListAllKeys, ListDeliveries, Overview, OwnedApiKeyList, SettingList,
} from '../../schema/admin/admin.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { IdParams } from '../../schema/http/params.ts'
import { failures, NoContent } from '../../schema/http/reply.ts'
import { linkNextPage } from '../http/next-page.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const tags = ['admin']
const security = [{ bearer: [] }]
const schemas = {
  overview: {
    tags,
    security,
    operationId: 'getOverview',
    summary: 'Read the state of the service: versions, counts, logins of 30 days, failures, storage',
    response: { 200: Overview, ...failures(401, 403) },
  },
  settings: {
    tags,
    security,
    operationId: 'listSettings',
    summary: 'List the settings of the node, without secrets',
    response: { 200: SettingList, ...failures(401, 403) },
  },
  keys: {
    tags,
    security,
    operationId: 'listAllApiKeys',
    summary: 'List the API keys of all users, newest first',
    querystring: ListAllKeys,
    response: { 200: OwnedApiKeyList, ...failures(400, 401, 403) },
  },
  deliveries: {
    tags,
    security,
    operationId: 'listFailedDeliveries',
    summary: 'List events and mails that could not be delivered, newest first',
    querystring: ListDeliveries,
    response: { 200: DeliveryList, ...failures(400, 401, 403) },
  },
  retry: {
    tags,
    security,
    operationId: 'retryDelivery',
    summary: 'Deliver an event or a mail again that could not be delivered',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
  discard: {
    tags,
    security,
    operationId: 'deleteDelivery',
    summary: 'Forget an event or a mail that could not be delivered',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
}

/** Adds the routes about the service as a whole (contract 18.1). */
const adminRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAdmin: admin, usherAccess: { allow, callerOf }, usherOptions: { publicPath },
  } = app
  const path = `${publicPath}/api/admin`
  describeTag(app, 'admin', 'The service as a whole')
  forbidStoring(app)

  app.get('/admin/overview', {
    schema: schemas.overview, exposeHeadRoute: true, onRequest: allow('service:read'),
  }, onOverview)
  app.get('/admin/settings', {
    schema: schemas.settings, exposeHeadRoute: true, onRequest: allow('service:read'),
  }, onSettings)
  app.get('/admin/keys', { schema: schemas.keys, exposeHeadRoute: true, onRequest: allow('api-keys:list') }, onKeys)
  app.get('/admin/deliveries', {
    schema: schemas.deliveries, exposeHeadRoute: true, onRequest: allow('deliveries:list'),
  }, onDeliveries)
  app.post('/admin/deliveries/:id/retry', { schema: schemas.retry, onRequest: allow('deliveries:retry') }, onRetry)
  app.delete('/admin/deliveries/:id', { schema: schemas.discard, onRequest: allow('deliveries:discard') }, onDiscard)

  async function onOverview (request: RequestOf<typeof schemas.overview>) {
    return admin.overview(callerOf(request))
  }

  async function onSettings (request: RequestOf<typeof schemas.settings>) {
    return [...admin.settings(callerOf(request))]
  }

  async function onKeys (request: RequestOf<typeof schemas.keys>, reply: ReplyOf<typeof schemas.keys>) {
    const { limit, after } = request.query
    const { rows, next } = await admin.listKeys(callerOf(request), { limit, after: after && decodeCursor(after) })
    linkNextPage(reply, `${path}/keys`, { limit }, next && encodeCursor(next))
    return [...rows]
  }

  async function onDeliveries (
    request: RequestOf<typeof schemas.deliveries>, reply: ReplyOf<typeof schemas.deliveries>
  ) {
    const { kind, limit, after } = request.query
    const { rows, next } = await admin.listDeliveries(callerOf(request), { kind, limit, after })
    linkNextPage(reply, `${path}/deliveries`, { kind, limit }, next)
    return rows
  }

  async function onRetry (request: RequestOf<typeof schemas.retry>, reply: ReplyOf<typeof schemas.retry>) {
    await admin.retryDelivery(callerOf(request), idOf(request))
    return reply.code(204).send(null)
  }

  async function onDiscard (request: RequestOf<typeof schemas.discard>, reply: ReplyOf<typeof schemas.discard>) {
    await admin.discardDelivery(callerOf(request), idOf(request))
    return reply.code(204).send(null)
  }
}

export default adminRoutes

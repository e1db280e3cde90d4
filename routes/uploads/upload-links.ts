import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { showLink, urlOfLink } from '../../plugins/uploads/show-upload.ts'
import { IdParams } from '../../schema/http/params.ts'
import { examples, FAILURES, failures, NoContent } from '../../schema/http/reply.ts'
import { baseUrlOf } from '../../schema/options/public-url.ts'
import {
  CreateUploadLink, NewUploadLink, UploadLinkList, UploadLinkParams, TooManyLinks
} from '../../schema/uploads/upload-link.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const tags = ['uploads']
const security = [{ bearer: [] }]
const schemas = {
  create: {
    tags,
    security,
    operationId: 'createUploadLink',
    [FAILURES]: examples(new TooManyLinks()),
    summary: 'Create a link that serves an upload without a token',
    params: IdParams,
    body: CreateUploadLink,
    response: { 201: NewUploadLink, ...failures(400, 401, 403, 404, 409, 413, 415) },
  },
  list: {
    tags,
    security,
    operationId: 'listUploadLinks',
    summary: 'List the links of an upload, newest first',
    params: IdParams,
    response: { 200: UploadLinkList, ...failures(401, 403, 404) },
  },
  revoke: {
    tags,
    security,
    operationId: 'revokeUploadLink',
    summary: 'Revoke a link, which stops the downloads that it serves on every node',
    params: UploadLinkParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
}

/** Adds the routes for links to uploads (contract 13.2). */
const uploadLinkRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAccess: { authenticate, callerOf, requireGranted }, usherUploads: uploads, usherOptions,
  } = app
  const { links } = uploads
  const base = `${baseUrlOf(usherOptions)}/api/uploads`
  const path = `${usherOptions.publicPath}/api/uploads`
  const allowed = [authenticate, requireGranted('uploads:share')]
  forbidStoring(app)

  app.post('/uploads/:id/links', {
    schema: schemas.create,
    onRequest: allowed,
    // 403 comes before 400 (contract 1.7).
    preValidation: (request) => uploads.forbid(callerOf(request), 'uploads:share', idOf(request)),
  }, onCreate)
  app.get('/uploads/:id/links', { schema: schemas.list, exposeHeadRoute: true, onRequest: allowed }, onList)
  app.delete('/uploads/:id/links/:linkId', { schema: schemas.revoke, onRequest: allowed }, onRevoke)

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    const { secret, ...link } = await links.create(callerOf(request), idOf(request), request.body)
    const created = { ...showLink(link), url: urlOfLink(base, idOf(request), secret) }
    return reply.code(201).header('location', `${path}/${idOf(request)}/links/${link.id}`).send(created)
  }

  async function onList (request: RequestOf<typeof schemas.list>) {
    const rows = await links.list(callerOf(request), idOf(request))
    return rows.map(showLink)
  }

  async function onRevoke (request: FastifyRequest, reply: ReplyOf<typeof schemas.revoke>) {
    const { linkId } = request.params as RequestOf<typeof schemas.revoke>['params']
    await links.revoke(callerOf(request), idOf(request), linkId.toLowerCase())
    return reply.code(204).send(null)
  }
}

export default uploadLinkRoutes

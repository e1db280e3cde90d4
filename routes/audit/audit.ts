import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { addVary } from '../../plugins/http/vary.ts'
import { AuditList, ListAudit } from '../../schema/audit/audit.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { pageTag } from '../../schema/http/entity-tag.ts'
import { failures, NotModified } from '../../schema/http/reply.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { linkNextPage } from '../http/next-page.ts'
import type { RequestOf, ReplyOf } from '../http/route-types.ts'
import { describeTag } from '../../plugins/http/docs.ts'

const schema = {
  tags: ['audit'],
  security: [{ bearer: [] }],
  operationId: 'listAuditEntries',
  summary: 'List the entries of the account log, newest first',
  querystring: ListAudit,
  response: { 200: AuditList, 304: NotModified, ...failures(400, 401, 403, 412) },
}

/** Adds the route that reads the account log. Admins read all entries, other users those of their own account. */
const auditRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAudit: audit, usherAccess: { authenticate, callerOf, requireGranted },
    usherOptions: { publicPath },
  } = app
  describeTag(app, 'audit', 'The account log')
  forbidStoring(app)

  app.get('/audit', {
    schema,
    exposeHeadRoute: true,
    onRequest: [authenticate, requireGranted('audit:read')],
    preValidation: authorizeUser,
  }, onList)

  async function authorizeUser (request: FastifyRequest): Promise<void> {
    const { user } = request.query as { user?: unknown }
    if (typeof user === 'string') callerOf(request).authorize('audit:read', { ownerId: user.toLowerCase() })
  }

  async function onList (request: RequestOf<typeof schema>, reply: ReplyOf<typeof schema>) {
    const { user, action, limit, after } = request.query
    const { rows, next } = await audit.list(
      callerOf(request), { user, action, limit, after: after && decodeCursor(after) }
    )
    addVary(reply, 'Authorization')
    // Entries have no versions. An entry changes when its user is deleted.
    const isCurrent = revalidate(request, reply, pageTag(rows, 'audit 1', `${next}`))
    linkNextPage(reply, `${publicPath}/api/audit`, { user, action, limit }, next && encodeCursor(next))
    return isCurrent ? sendNotModified(request, reply) : [...rows]
  }
}

export default auditRoutes

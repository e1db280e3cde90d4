import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { AuditEntryRow } from '../db/audit.ts'
import { forbidStoring } from '../plugins/http.ts'
import { AuditList, ListAudit } from '../schema/audit.ts'
import { decodeCursor, encodeCursor } from '../schema/cursor.ts'
import { failures } from '../schema/reply.ts'

/** Adds the route that reads the account log. Admins read all entries, other users those of their own account. */
const audit: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAudit, usherAuth: { actorOf, authenticate, authorize }, usherOptions: { prefix, policy } } = app
  forbidStoring(app)
  const readsAll = policy['audit:read']

  app.get('/audit', {
    onRequest: authenticate,
    preValidation: async (request) => {
      const { user } = request.query as { user?: unknown }
      if (typeof user === 'string') authorize(actorOf(request), 'audit:read', user.toLowerCase())
    },
    schema: {
      tags: ['audit'],
      security: [{ bearer: [] }],
      summary: 'List the entries of the account log, newest first',
      querystring: ListAudit,
      response: { 200: AuditList, ...failures(400, 401, 403) },
    },
  }, async (request, reply) => {
    const { user, action, limit, after } = request.query
    const actor = actorOf(request)
    const all = readsAll(actor)
    const userId = user ?? (all ? undefined : actor.id)
    const { rows, next } = await usherAudit.list({ userId, action, limit, after: after && decodeCursor(after) })
    if (next) {
      const query = new URLSearchParams({ ...user && { user }, ...action && { action }, limit: `${limit}`, after: encodeCursor(next) })
      reply.header('link', `<${prefix}/api/audit?${query}>; rel="next"`)
    }
    return all ? [...rows] : rows.map((entry) => forOwner(entry))
  })
}

// The owner of an account must not see the address and browser of an admin who changed it. Those of a client that nobody knows,
// such as one whose login failed, remain visible.
function forOwner (entry: AuditEntryRow): AuditEntryRow {
  const isByAnotherUser = entry.actorId !== null && entry.actorId !== entry.userId
  return isByAnotherUser ? { ...entry, address: '', userAgent: '' } : entry
}

export default audit

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { AuditEntryRow } from '../db/audit.ts'
import { forbidStoring } from '../plugins/http.ts'
import { AuditList, ListAudit } from '../schema/audit.ts'
import { decodeCursor, encodeCursor } from '../schema/cursor.ts'
import { failures } from '../schema/reply.ts'

/** The account log: all of it for an admin, their own for everybody else. */
const audit: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAudit, usherAuth: { authenticate, authorize }, usherOptions: { prefix, policy } } = app
  forbidStoring(app)
  const readsAll = policy['audit:read']

  app.get('/audit', {
    onRequest: authenticate,
    preValidation: async ({ actor, query }) => {
      const { user } = query as { user?: unknown }
      if (typeof user === 'string') authorize(actor!, 'audit:read', user.toLowerCase())
    },
    schema: { tags: ['audit'], security: [{ bearer: [] }], summary: 'List who did what and when, newest first', querystring: ListAudit, response: { 200: AuditList, ...failures(400, 401, 403) } },
  }, async ({ actor, query: { user, action, limit, after } }, reply) => {
    const all = readsAll(actor!)
    const { rows, next } = await usherAudit.list({ userId: user ?? (all ? undefined : actor!.id), action, limit, after: after && decodeCursor(after) })
    if (next) reply.header('link', `<${prefix}/api/audit?${new URLSearchParams({ ...user && { user }, ...action && { action }, limit: `${limit}`, after: encodeCursor(next) })}>; rel="next"`)
    return all ? [...rows] : rows.map((entry) => forOwner(entry))
  })
}

// Where an admin was who changed an account is not for its owner; where somebody unknown has tried to log in is.
function forOwner (entry: AuditEntryRow): AuditEntryRow {
  const another = entry.actorId !== null && entry.actorId !== entry.userId
  return another ? { ...entry, address: '', userAgent: '' } : entry
}

export default audit

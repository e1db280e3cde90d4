import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Page } from '../db/page.ts'
import type { UserRow } from '../db/tables.ts'
import { decodeCursor, encodeCursor } from '../schema/cursor.ts'
import { NotAcceptable, UserNotFound } from '../schema/errors.ts'
import { refuseOwnWords } from '../schema/password.ts'
import type { Actor } from '../schema/policy.ts'
import { failures, NoContent } from '../schema/reply.ts'
import { CreateUser, ListUsers, ReplaceUser, User, type Role, UserList, UserParams } from '../schema/user.ts'
import { mediaTypes, negotiate, represent, type MediaType } from '../schema/version.ts'

/** Adds the routes for user records (contract 2). Their list has versions (contract 3). */
const users: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherDatabase: { read, write }, usherAuth: { allow, actorOf, authorize, callerOf }, usherAccounts: accounts, usherPasswords: passwords,
    usherAudit: audit, usherOptions,
  } = app
  const base = `${usherOptions.prefix}/api/users`
  const serialized = new WeakMap<Page<UserRow>, Map<MediaType, string>>()
  const tags = ['users']
  const security = [{ bearer: [] }]

  app.get('/users', {
    onRequest: negotiateVersion,
    schema: { tags, summary: 'List users, newest first', querystring: ListUsers, response: { 200: UserList, ...failures(400, 406) } },
  }, async (request, reply) => {
    const { limit, after, role } = request.query
    const page = await read.users({ role, limit, after: after && decodeCursor(after) }, request.socket)
    if (page.next) reply.header('link', `<${pageUrl(request, encodeCursor(page.next))}>; rel="next"`)
    return reply.send(serialize(page, limit, reply) as never)
  })

  app.get('/users/:id', {
    schema: { tags, summary: 'Read a user', params: UserParams, response: { 200: User, ...failures(404) } },
  }, async ({ params: { id }, socket }) => {
    const user = await read.user(id, socket)
    if (!user) throw new UserNotFound()
    return user
  })

  app.post('/users', {
    onRequest: allow('users:create'),
    preValidation: async (request) => authorizeRole(actorOf(request), request.body, 'user'),
    schema: {
      tags,
      security,
      summary: 'Create a user',
      body: CreateUser,
      response: { 201: User, ...failures(400, 401, 403, 409, 413, 415) },
    },
  }, async (request, reply) => {
    const { body: { password, ...user }, socket } = request
    if (password !== undefined) refuseOwnWords(password, user)
    const passwordHash = password === undefined ? null : await passwords.hash(password, socket)
    const row = { ...user, passwordHash, context: audit.contextOf(request) }
    const created = await write.user(row, callerOf(actorOf(request), socket))
    return reply.code(201).header('location', `${base}/${created.id}`).send(created)
  })

  app.put('/users/:id', {
    onRequest: allow('users:replace', idOf),
    preValidation: async (request) => {
      const actor = actorOf(request)
      authorizeRole(actor, request.body, idOf(request) === actor.id ? actor.role : undefined)
    },
    schema: {
      tags,
      security,
      summary: 'Replace a user',
      params: UserParams,
      body: ReplaceUser,
      response: { 200: User, ...failures(400, 401, 403, 404, 409, 413, 415) },
    },
  }, async (request) => {
    const { params: { id }, body: { name, email, role } } = request
    return accounts.replace(request, id, { name, email, role })
  })

  app.delete('/users/:id', {
    onRequest: allow('users:delete', idOf),
    schema: {
      tags,
      security,
      summary: 'Delete a user with their sessions, posts and uploads',
      params: UserParams,
      response: { 204: NoContent, ...failures(401, 403, 404, 409) },
    },
  }, async (request, reply) => {
    await accounts.delete(request, request.params.id)
    return reply.code(204).send(null)
  })

  // Concurrent requests for the same page share one `Page` object, which is serialized once for all of them.
  function serialize (page: Page<UserRow>, limit: number, reply: FastifyReply): string {
    const type = reply.getHeader('content-type') as MediaType
    const texts = serialized.get(page) ?? new Map<MediaType, string>()
    serialized.set(page, texts)
    let text = texts.get(type)
    if (text === undefined) {
      const body = represent(type, page.rows, { next: page.next && encodeCursor(page.next), limit })
      text = reply.getSerializationFunction('200', type)!(body as never)
      texts.set(type, text)
    }
    return text
  }

  function pageUrl ({ query }: FastifyRequest, after: string): string {
    const { role, limit } = query as typeof ListUsers.static
    return `${base}?${new URLSearchParams({ ...role !== undefined && { role }, limit: `${limit}`, after })}`
  }

  // Checks the permission to grant the role in the body. `freeRole` needs no permission. This runs before the body is validated,
  // because 403 comes before 400 (contract 1.7).
  function authorizeRole (actor: Actor, body: unknown, freeRole: Role | undefined): void {
    const role = (body as { role?: unknown } | null)?.role
    if (role !== undefined && role !== freeRole) authorize(actor, 'users:grant-role')
  }
}

async function negotiateVersion ({ headers: { accept } }: FastifyRequest, reply: FastifyReply): Promise<void> {
  const type = negotiate(accept)
  // CORS of the host or the node may have set `Vary` already.
  reply.header('vary', [reply.getHeader('vary') ?? [], 'Accept'].flat().join(', '))
  if (!type) throw new NotAcceptable(mediaTypes.join(', '))
  reply.type(type)
}

const idOf = ({ params }: FastifyRequest): string => (params as { id: string }).id.toLowerCase()

export default users

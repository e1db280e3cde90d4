import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import type { UserPage } from '../db/user-lists.ts'
import { listUsersFor, type ListedUsers } from '../plugins/users/list-users.ts'
import { combinedTag } from '../schema/entity-tag.ts'
import type { Actor, ReadAction } from '../schema/policy.ts'
import { failures } from '../schema/reply.ts'
import { UserList } from '../schema/user.ts'
import { ListUsers } from '../schema/user-list.ts'
import { represent, type MediaType } from '../schema/version.ts'
import { evaluateConditions } from './conditional-request.ts'
import { negotiateVersion } from './negotiate-version.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'
import { strictParameters } from './strict-parameters.ts'

// The response depends on this as well.
const EMAIL: ReadAction[] = ['users:read-email']

const schema = {
  tags: ['users'],
  summary: 'List users, by default newest first',
  description: 'With `Prefer: handling=strict`, unknown parameters are errors. A page has an `ETag`; with `If-None-Match`, an unchanged page is 304.',
  querystring: ListUsers,
  response: { 200: UserList, ...failures(400, 401, 403, 406) },
}

/** A page as it is sent to all who see the same of it. */
interface Rendered { readonly etag: string, text?: string }

/** Adds the list of users (contract 2.1, 3 and 10.5). */
const userListRoute: FastifyPluginAsyncTypebox = async (app) => {
  const { usherActor: actors, usherVisibility: visibility, usherOptions: { prefix } } = app
  const path = `${prefix}/api/users`
  const rendered = new WeakMap<UserPage, Map<string, Rendered>>()

  app.get('/users', {
    schema: { ...schema, ...visibility.securityOf('users:list', EMAIL) },
    exposeHeadRoute: true,
    onRequest: [...visibility.reads('users:list', EMAIL), negotiateVersion],
    preValidation: strictParameters(Object.keys(ListUsers.properties)),
  }, onList)

  async function onList (request: RequestOf<typeof schema>, reply: ReplyOf<typeof schema>) {
    const { query, socket, headers } = request
    const { limit } = query
    const reader = actors.in(request)
    const list = await listUsersFor(app, query, reader, socket)
    const { after, ...parameters } = query
    if (list.next !== null) reply.header('link', `<${path}?${searchOf({ ...parameters, after: list.next })}>; rel="next"`)
    const type = reply.getHeader('content-type') as MediaType
    const found = render(list, `${type} ${limit} ${visibility.audienceOf(reader, EMAIL)}`)
    reply.header('etag', found.etag).header('cache-control', 'private, no-cache')
    // A page has no date, so conditions on one are ignored.
    if (headers['if-none-match'] !== undefined &&
      evaluateConditions({ 'if-none-match': headers['if-none-match'] }, { etag: found.etag, lastModified: new Date(NaN) }) === 304) {
      return reply.removeHeader('content-type').code(304 as 200).send()
    }
    found.text ??= serialize(list, limit, type, reader, reply)
    return reply.send(found.text as never)
  }

  // Concurrent requests for the same page share one `UserPage`, which is rendered once for all readers who see the same of it.
  function render ({ page, next, members }: ListedUsers, key: string): Rendered {
    const views = rendered.get(page) ?? new Map<string, Rendered>()
    rendered.set(page, views)
    const known = views.get(key)
    if (known) return known
    const view = { etag: combinedTag(['users 1', key, `${members}`, `${next}`, ...page.rows.flatMap(({ id, rowVersion }) => [id, rowVersion])]) }
    views.set(key, view)
    return view
  }

  function serialize ({ page, next, members }: ListedUsers, limit: number, type: MediaType, reader: Actor | null, reply: FastifyReply): string {
    const rows = page.rows.map((user) => visibility.show(user, reader))
    if (!members) return reply.getSerializationFunction('200', type)!(represent(type, rows, { next, limit }) as never)
    const chosen = rows.map((row) => Object.fromEntries(members.filter((name) => name in row).map((name) => [name, row[name as 'id']])))
    return JSON.stringify(represent(type, chosen, { next, limit }))
  }
}

function searchOf (parameters: Record<string, string | number | undefined>): URLSearchParams {
  return new URLSearchParams(Object.entries(parameters).flatMap(([name, value]) => value === undefined ? [] : [[name, `${value}`]]))
}

export default userListRoute

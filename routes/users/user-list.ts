import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { UserPage } from '../../db/users/list-users.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import type { ListedUsers } from '../../plugins/users/read-users.ts'
import { addVary } from '../../plugins/http/vary.ts'
import { combinedTag } from '../../schema/http/entity-tag.ts'
import type { ReadAction } from '../../schema/options/policy.ts'
import { failures, HEADERS, NotModified } from '../../schema/http/reply.ts'
import { UserList } from '../../schema/users/users.ts'
import { accountFilters, ListUsers } from '../../schema/users/user-list.ts'
import { represent, type MediaType } from '../../schema/runtime/version.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { negotiateVersion } from '../http/negotiate-version.ts'
import { encodeLarge } from '../http/large-page.ts'
import { linkNextPage } from '../http/next-page.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { strictParameters } from '../http/strict-parameters.ts'

// The response depends on this as well.
const EMAIL: ReadAction[] = ['users:read-email']

const schema = {
  tags: ['users'],
  operationId: 'listUsers',
  summary: 'List users, by default newest first',
  description: 'With `Prefer: handling=strict`, unknown parameters are errors. A page has an `ETag`; with `If-None-Match`, an unchanged page is 304.',
  querystring: ListUsers,
  [HEADERS]: Object.fromEntries([200, 304, 400, 401, 412, 500, 503].map((status) => [status, ['Preference-Applied']])),
  response: { 200: UserList, 304: NotModified, ...failures(400, 401, 403, 406, 412) },
}

/** A page as it is sent to all who see the same of it. */
interface Rendered { readonly etag: string, payload?: string | Buffer }

/** Adds the list of users (contract 2.1, 3 and 10.5). */
const userListRoute: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherUsers: users, usherAccess: { allow, authenticate, policy, readerOf }, usherOptions: { publicPath },
  } = app
  const path = `${publicPath}/api/users`
  const rendered = new WeakMap<UserPage, Map<string, Rendered>>()

  app.get('/users', {
    schema: { ...schema, ...policy.securityOf('users:list', EMAIL) },
    exposeHeadRoute: true,
    onRequest: [...allow('users:list', undefined, EMAIL), identifyForFilters, negotiateVersion],
    ...strictParameters(Object.keys(ListUsers.properties)),
  }, onList)

  // Only admins may filter by what concerns accounts, also where anybody may list users.
  async function identifyForFilters (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (!accountFilters.some((name) => Object.hasOwn(request.query as object, name))) return
    reply.header('cache-control', 'private, no-cache')
    addVary(reply, 'Authorization')
    await authenticate(request, reply)
  }

  async function onList (request: RequestOf<typeof schema>, reply: ReplyOf<typeof schema>) {
    const { query, headers } = request
    const { limit } = query
    const reader = readerOf(request)
    const type = reply.getHeader('content-type') as MediaType
    // A client that has the current page costs a statement that reads no more than ids and versions. Other clients send
    // no tags.
    if (headers['if-none-match'] !== undefined && headers['if-match'] === undefined) {
      const { isCurrent } = await read({ onlyVersions: true })
      if (isCurrent) return notModified()
    }
    const { list, view, isCurrent } = await read()
    if (isCurrent) return notModified()
    view.payload = view.payload === undefined
      ? serialize(list, limit, type, reader, reply)
      : encodeLarge(view.payload)
    // Fastify would add the charset to text only.
    return reply.type(`${type}; charset=utf-8`).send(view.payload as never)

    async function read (options?: { onlyVersions: boolean }) {
      const list = await users.list(reader, query, options)
      const view = renderedFor(list, `${type} ${limit}`, reader)
      linkNextPage(reply, path, query, list.next)
      return { list, view, isCurrent: revalidate(request, reply, view.etag) }
    }

    function notModified () {
      return sendNotModified(request, reply.removeHeader('content-type'))
    }
  }

  // Concurrent requests for the same page share one `UserPage`, which is rendered once for all readers who see the same
  // of it.
  function renderedFor ({ page, next, members }: ListedUsers, key: string, reader: Caller): Rendered {
    const views = rendered.get(page) ?? new Map<string, Rendered>()
    rendered.set(page, views)
    const name = `${key} ${members} ${next} ${seenOf(page, reader)}`
    const known = views.get(name)
    if (known) return known
    const tags = page.rows.flatMap((user) => [user.id, reader.viewOf(user.id).tagOf(user)])
    const view = { etag: combinedTag(['users 1', key, `${members}`, `${next}`, ...tags]) }
    views.set(name, view)
    return view
  }

  // Returns a text that is the same for readers who see the same of a page.
  function seenOf ({ rows }: UserPage, reader: Caller): string {
    if (policy.isOpen(...EMAIL)) return ''
    const seen = rows.map(({ id }) => reader.viewOf(id).key)
    return seen.every((key) => key === seen[0]) ? `all ${seen[0]}` : seen.join()
  }

  function serialize (
    { page, next, members }: ListedUsers, limit: number, type: MediaType, reader: Caller, reply: FastifyReply
  ): string {
    const rows = page.rows.map((user) => reader.viewOf(user.id).show(user))
    if (!members) return reply.getSerializationFunction('200', type)!(represent(type, rows, { next, limit }) as never)
    const chosen = rows.map((row) =>
      Object.fromEntries(members.filter((name) => name in row).map((name) => [name, row[name as 'id']])))
    return JSON.stringify(represent(type, chosen, { next, limit }))
  }
}

export default userListRoute

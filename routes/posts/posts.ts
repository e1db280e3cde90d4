import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { DraftRow } from '../../db/posts/drafts.ts'
import type { PostPage, PostRow } from '../../db/posts/posts.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import { addJsonParser } from '../../plugins/http/requests.ts'
import { describeTag } from '../../plugins/http/docs.ts'
import { decodePlace, encodePlace } from '../../schema/http/cursor.ts'
import { combinedTag, entityTag, permits, readIfMatch, readIfNoneMatch, type Match } from '../../schema/http/entity-tag.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import { IDEMPOTENT, IdempotencyKeyInUse } from '../../schema/http/idempotency.ts'
import { IdParams, PreconditionHeaders } from '../../schema/http/params.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, NotModified } from '../../schema/http/reply.ts'
import {
  AlreadyPublished, ListPosts, NewPost, PatchPost, Post, PostList, PostNotFound, SearchNotReady,
} from '../../schema/posts/post.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { createOnce } from '../http/idempotency-key.ts'
import { encodeLarge } from '../http/large-page.ts'
import { MERGE_PATCH, PATCH_TYPES, requirePatchType } from '../http/merge-patch.ts'
import { linkNextPage } from '../http/next-page.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { strictParameters } from '../http/strict-parameters.ts'
import draftRoutes from './drafts.ts'
import eventsRoute from './events.ts'
import { showAny, showPost } from './show-post.ts'

const tags = ['posts']
const security = [{ bearer: [] }]
const schemas = {
  list: {
    tags,
    operationId: 'listPosts',
    summary: 'List posts, by default newest first',
    description: 'With `Prefer: handling=strict`, unknown parameters are errors. A page with more than 4 MiB of content has fewer posts than `limit`. So may that of a search, also none: as long as there is a `Link`, the next page may have more.',
    querystring: ListPosts,
    [HEADERS]: Object.fromEntries([200, 304, 400, 401, 412, 500, 503].map((status) => [status, ['Preference-Applied']])),
    [FAILURES]: examples(new SearchNotReady()),
    response: { 200: PostList, 304: NotModified, ...failures(400, 401, 403, 412) },
  },
  create: {
    tags,
    security,
    operationId: 'createPost',
    summary: 'Create a post',
    [IDEMPOTENT]: true,
    [FAILURES]: examples(new IdempotencyKeyInUse()),
    [HEADERS]: { 201: ['ETag'] },
    body: NewPost,
    response: { 201: Post, ...failures(400, 401, 403, 404, 409, 410, 413, 415, 422, 429) },
  },
  read: {
    tags,
    operationId: 'getPost',
    summary: 'Read a post',
    params: IdParams,
    response: { 200: Post, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  patch: {
    tags,
    security,
    operationId: 'updatePost',
    summary: 'Change a post: absent members stay as they are',
    consumes: PATCH_TYPES,
    [FAILURES]: examples(new AlreadyPublished()),
    [HEADERS]: { 200: ['ETag'], 415: ['Accept-Patch'] },
    params: IdParams,
    headers: PreconditionHeaders,
    body: PatchPost,
    response: { 200: Post, ...failures(400, 401, 403, 404, 409, 412, 413, 415) },
  },
  delete: {
    tags,
    security,
    operationId: 'deletePost',
    summary: 'Delete a post',
    params: IdParams,
    headers: PreconditionHeaders,
    response: { 204: NoContent, ...failures(400, 401, 403, 404, 412) },
  },
}

/** A page as it is sent to all who read it. */
interface Rendered { readonly etag: string, payload?: string | Buffer }

/** Adds the routes of posts (contract 22.2). */
const postRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherPosts: { records, reads, changes }, usherOptions: { publicPath },
    usherAccess: {
      actors, allow, authenticate, callerOf, identifies, identifyQuietly, policy, readerOf, requireGranted,
    },
  } = app
  const once = createOnce(app)
  const path = `${publicPath}/api/posts`
  const rendered = new WeakMap<PostPage, Rendered>()
  describeTag(app, 'posts', 'Posts')

  await app.register(eventsRoute)
  await app.register(draftRoutes)
  app.get('/posts', {
    schema: { ...schemas.list, ...policy.securityOf('posts:read') },
    exposeHeadRoute: true,
    onRequest: identifies('posts:read'),
    ...strictParameters(Object.keys(ListPosts.properties)),
  }, onList)
  app.post('/posts', {
    schema: schemas.create, onRequest: allow('posts:create'), preValidation: authorizeAuthor,
  }, onCreate)
  app.get('/posts/:id', {
    schema: { ...schemas.read, ...policy.securityOf('posts:read') },
    exposeHeadRoute: true,
    onRequest: identifies('posts:read'),
  }, onRead)
  await app.register(async (app) => {
    addJsonParser(app, MERGE_PATCH)
    app.patch('/posts/:id', {
      schema: schemas.patch,
      onRequest: [authenticate, requireGranted('posts:update'), requirePatchType],
      preValidation: (request) => changes.forbid(callerOf(request), 'posts:update', idOf(request)),
    }, onPatch)
  })
  app.delete('/posts/:id', {
    schema: schemas.delete,
    onRequest: [authenticate, requireGranted('posts:delete')],
    preValidation: (request) => changes.forbid(callerOf(request), 'posts:delete', idOf(request)),
  }, onDelete)

  // Runs before the body is validated, because 403 comes before 400 (contract 1.7).
  async function authorizeAuthor (request: FastifyRequest): Promise<void> {
    const { authorId } = (request.body ?? {}) as { authorId?: unknown }
    if (typeof authorId === 'string') changes.authorizeCreation(callerOf(request), authorId)
  }

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    const { query, query: { authorId, q, since, sort, limit, after } } = request
    const page = await reads.listWhole(readerOf(request), {
      authorId: authorId?.toLowerCase(),
      ...q !== undefined && { q },
      since: since && readInstant(since),
      isOldestFirst: sort === 'createdAt',
      limit,
      after: after && decodePlace(after).position,
    })
    const view = renderedFor(page)
    const isCurrent = revalidate(request, reply, view.etag)
    linkNextPage(reply, path, query, page.next && encodePlace(page.next))
    if (isCurrent) return sendNotModified(request, reply)
    // The same bytes are sent to all who read the page at the same time.
    view.payload = view.payload === undefined
      ? reply.serialize(page.rows.map(showPost)) as string
      : encodeLarge(view.payload)
    return reply.type('application/json; charset=utf-8').send(view.payload as never)
  }

  function renderedFor (page: PostPage): Rendered {
    const known = rendered.get(page)
    if (known) return known
    const tags = page.rows.flatMap(({ id, rowVersion }) => [id, rowVersion])
    const view = { etag: combinedTag(['posts 2', page.next ? encodePlace(page.next) : '', ...tags]) }
    rendered.set(page, view)
    return view
  }

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    const { body } = request
    const caller = callerOf(request)
    const created = await once(request, reply, { content: body }, {
      isQuick: changes.isQuick,
      operate: (key) => changes.create(caller, body, key),
      restore: (stored) => changes.restoreCreated(caller, body, stored),
    })
    return reply.code(201).header('location', `${path}/${created.id}`).send(showTagged(created, reply))
  }

  async function onRead (request: RequestOf<typeof schemas.read>, reply: ReplyOf<typeof schemas.read>) {
    const post = await reads.find(readerOf(request), idOf(request), () => identifyReader(request))
    if (!post) throw new PostNotFound()
    return revalidate(request, reply, entityTag(post.rowVersion)) ? sendNotModified(request, reply) : showAny(post)
  }

  // Returns the reader, who is not identified yet if anyone may read posts.
  async function identifyReader (request: FastifyRequest): Promise<Caller> {
    if (!actors.in(request)) await identifyQuietly(request)
    return readerOf(request)
  }

  async function onPatch (request: RequestOf<typeof schemas.patch>, reply: ReplyOf<typeof schemas.patch>) {
    const match = await matchOf(request)
    return showTagged(await changes.update(callerOf(request), idOf(request), request.body, { match }), reply)
  }

  async function onDelete (request: RequestOf<typeof schemas.delete>, reply: ReplyOf<typeof schemas.delete>) {
    await changes.delete(callerOf(request), idOf(request), { match: await matchOf(request) })
    return reply.code(204).send(null)
  }

  // Returns the versions that the post may have for the preconditions to be true. A version that a client names in
  // `If-None-Match` never comes back, so a change after this look cannot make it false.
  async function matchOf (request: FastifyRequest): Promise<Match> {
    const match = readIfMatch(request.headers['if-match'])
    const noneMatch = readIfNoneMatch(request.headers['if-none-match'])
    if (noneMatch === undefined) return match
    if (noneMatch === '*') return []
    const post = await records.find(callerOf(request), idOf(request))
    return post && permits(noneMatch, post.rowVersion) ? [] : match
  }
}

function showTagged (post: PostRow | DraftRow, reply: FastifyReply) {
  reply.header('etag', entityTag(post.rowVersion))
  return showAny(post)
}

// The validator accepts a date that does not exist, such as 30 February.
function readInstant (given: string): string {
  const instant = new Date(given)
  if (Number.isNaN(instant.getTime())) throw new InvalidInput('since must be a date and time in RFC 3339 format')
  return instant.toISOString()
}

export default postRoutes

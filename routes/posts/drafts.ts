import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { combinedTag } from '../../schema/http/entity-tag.ts'
import { failures, NotModified } from '../../schema/http/reply.ts'
import { DraftList, ListDrafts } from '../../schema/posts/post.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { linkNextPage } from '../http/next-page.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { showDraft } from './show-post.ts'

const schema = {
  tags: ['posts'],
  security: [{ bearer: [] }],
  operationId: 'listDrafts',
  summary: 'List your own drafts, newest first',
  description: 'A page with more than 4 MiB of content has fewer drafts than `limit`.',
  querystring: ListDrafts,
  response: { 200: DraftList, 304: NotModified, ...failures(400, 401, 403, 412) },
}

/** Adds the list of drafts (contract 22.4). Whatever else is done to a draft is done to a post. */
const draftRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherPosts: { reads }, usherOptions: { publicPath }, usherAccess: { authenticate, callerOf },
  } = app
  const path = `${publicPath}/api/posts/drafts`

  app.get('/posts/drafts', {
    schema, exposeHeadRoute: true, onRequest: authenticate,
  }, onList)

  async function onList (request: RequestOf<typeof schema>, reply: ReplyOf<typeof schema>) {
    const { query, query: { limit, after } } = request
    const { rows, next } = await reads.listDrafts(callerOf(request), { limit, after: after && decodeCursor(after) })
    const tags = rows.flatMap(({ id, rowVersion }) => [id, rowVersion])
    const isCurrent = revalidate(request, reply, combinedTag(['drafts', next ?? '', ...tags]))
    linkNextPage(reply, path, query, next && encodeCursor(next))
    return isCurrent ? sendNotModified(request, reply) : rows.map(showDraft)
  }
}

export default draftRoutes

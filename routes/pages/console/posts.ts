import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { PostRow } from '../../../db/posts/posts.ts'
import { EXCERPT } from '../../../db/posts/search-posts.ts'
import { decodePlace, encodePlace } from '../../../schema/http/cursor.ts'
import { entityTag } from '../../../schema/http/entity-tag.ts'
import { PostNotFound, PostSearch } from '../../../schema/posts/post.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { card, emptyState, table } from '../components.ts'
import { html, type Html } from '../html.ts'
import { pickable, pickColumn, type Bulk } from './bulk.ts'
import { ROWS_PER_PAGE, type Context, type Render, type Submit } from './context.ts'
import { separator } from './layout.ts'
import { ask, askButton, menuColumn, menuLink, rowMenu } from './questions.ts'
import { createGuideLink, linkToUser, readNames, searchForm, showPages, showText } from './shown.ts'

const parseSearch = createParser(Type.Object({ q: Type.Optional(PostSearch) }))
const SHOWN = ['authorId', 'title', 'createdAt', 'rowVersion'] as const

type FoundPost = Pick<PostRow, 'id' | typeof SHOWN[number]>

const showExcerpt = (excerpt: string): string => excerpt.length < EXCERPT ? excerpt : `${excerpt}…`

/** Returns the pages of posts, and what their forms do. */
export function createPostPages (app: FastifyInstance) {
  const { usherUsers: users, usherPosts: posts } = app

  const guideLink = createGuideLink(app.usherOptions)

  const bulk: Bulk = {
    section: 'posts',
    address: '/posts',
    title: 'ofPosts',
    actions: {
      delete: {
        text: 'bulkDelete',
        ask: 'askDeletePosts',
        hint: 'hintDelete',
        isDanger: true,
        needs: 'posts:delete',
        run: ({ caller }, id, version) => posts.changes.delete(caller, id, { ifMatch: version }),
      },
    },
    async namesOf ({ caller }, ids) {
      const found = await Promise.all(ids.map((id) => posts.records.read(id, caller.client)))
      return new Map(found.filter((post) => post !== undefined)
        .filter(({ authorId }) => caller.allows('posts:read', { ownerId: authorId })).map(({ id, title }) => [id, title]))
    },
  }

  /** Returns the posts of a user, or of all, which can be searched and selected. */
  async function showList (
    context: Context, { authorId, address }: { authorId?: string | undefined, address: string }
  ): Promise<Html> {
    const { caller, path, query: { q = '', after }, words, words: { t } } = context
    const { rows: listed, next } = await posts.reads.list(caller, {
      ...parseSearch(q.trim() === '' ? {} : { q }),
      fields: SHOWN,
      authorId,
      limit: ROWS_PER_PAGE,
      after: after === undefined ? undefined : decodePlace(after).position,
    })
    const rows = listed as readonly FoundPost[]
    const excerpts = await posts.reads.readExcerpts(caller, rows)
    const names = authorId === undefined
      ? await readNames(context, users.records, rows.map((row) => row.authorId))
      : new Map<string, string>()
    return html`<div id="results">${rows.length === 0
      ? emptyState(next || q.trim() !== ''
    ? { title: t.noPost, text: next ? t.laterPages : t.noneFoundHint }
    : { title: t.noPost, text: t.noPostHint, actions: guideLink('client', t.clientGuide) })
      : pickable(context, bulk, table<FoundPost>({
        caption: t.ofPosts,
        hidesCaption: true,
        columns: [
          pickColumn(context, ({ id, title, rowVersion }) => ({ id, name: title, version: entityTag(rowVersion) })),
          {
            title: t.titleColumn,
            isHeader: true,
            kind: 'wide',
            cell: ({ id, title }) => html`<a href="${path}/posts/${id}">${showText(title)}</a><span class="muted excerpt" dir="auto">${
              showExcerpt(excerpts.get(id) ?? '')}</span>`,
          },
          ...authorId !== undefined
            ? []
            : [{ title: t.authorColumn, cell: (row: FoundPost) => linkToUser(context, row.authorId, names) }],
          { title: t.createdColumn, cell: ({ createdAt }) => words.ago(createdAt) },
          menuColumn(context, ({ id, title, authorId: ownerId }) => caller.allows('posts:delete', { ownerId }) && rowMenu(context, { id, name: title }, [
            menuLink(`${path}/posts/${id}/delete`, t.bulkDelete, { isDanger: true }),
          ])),
        ],
        rows,
      }))}
${showPages(context, address, { next: next && encodePlace(next), count: rows.length })}</div>`
  }

  const list: Render = async (context) => {
    const { path, query: { q = '', author }, words, words: { t } } = context
    const authorId = author?.toLowerCase() || undefined
    const names = await readNames(context, users.records, [authorId])
    return {
      section: 'posts',
      title: t.ofPosts,
      content: html`${searchForm(context, '/posts', {
        label: t.ofPosts,
        search: { label: t.searchPosts, value: q, placeholder: t.beginsWith },
        keeps: { author: authorId },
      })}
${authorId !== undefined && html`<p class="hint">${words.phrase('ofOneUser', { name: linkToUser(context, authorId, names) })} <a href="${path}/posts">${t.showAll}</a></p>`}
${await showList(context, { authorId, address: '/posts' })}`,
    }
  }

  const one: Render = async (context) => {
    const { caller, path, params, words, words: { t } } = context
    const post = await posts.reads.get(caller, params['item']!.toLowerCase())
    if (!post) throw new PostNotFound()
    const names = await readNames(context, users.records, [post.authorId])
    return {
      section: 'posts',
      title: post.title,
      crumbs: [{ href: `${path}/posts`, text: t.ofPosts }],
      hint: html`<p class="muted">${linkToUser(context, post.authorId, names)}${separator}${words.time(post.createdAt)}</p>`,
      actions: caller.allows('posts:delete', { ownerId: post.authorId }) &&
        askButton(`${path}/posts/${post.id}/delete`, `${t.deletePost} …`, { isDanger: true }),
      content: card(html`<div class="text" dir="auto">${post.content}</div>`),
    }
  }

  const question: Render = async (context, outcome = {}) => {
    const { caller, path, params, words, words: { t } } = context
    const post = await posts.reads.get(caller, params['item']!.toLowerCase())
    if (!post) throw new PostNotFound()
    caller.authorize('posts:delete', { ownerId: post.authorId })
    return ask(context, outcome, {
      title: words.format('deleteThis', { name: post.title }),
      text: t.hintDelete,
      button: t.bulkDelete,
      isDanger: true,
      fields: { version: entityTag(post.rowVersion) },
    }, { action: `${path}/posts/${post.id}/delete`, section: 'posts', crumbs: [{ href: `${path}/posts`, text: t.ofPosts }] })
  }

  const remove: Submit = async ({ caller, params, path }, { version }) => {
    await posts.changes.delete(caller, params['item']!.toLowerCase(), { ifMatch: version ?? '""' })
    return `${path}/posts?done=post-deleted`
  }

  return { bulk, showList, list, one, question, remove }
}

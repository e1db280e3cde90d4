import type { FastifyInstance } from 'fastify'
import type { AuditEntryRow } from '../../../db/audit/audit.ts'
import type { ListedPost, PostRow } from '../../../db/posts/posts.ts'
import type { UploadRow } from '../../../db/uploads/uploads.ts'
import { auditActions, ListAudit } from '../../../schema/audit/audit.ts'
import { ListAllKeys, ListDeliveries } from '../../../schema/admin/admin.ts'
import { decodeCursor, decodePlace, encodeCursor, encodePlace } from '../../../schema/http/cursor.ts'
import { entityTag, readIfMatch } from '../../../schema/http/entity-tag.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { PostNotFound } from '../../../schema/posts/post.ts'
import { badge, button, card, emptyState, field, table } from '../components.ts'
import { html, type Html } from '../html.ts'
import { ROWS_PER_PAGE, type Context, type Form, type Render } from './context.ts'
import {
  buttonForm, dangerForm, linkToUser, readNames, REVOKE_LINKS, showAgent, showBytes, showNumber, showPages, showText,
  showTime,
} from './shown.ts'

type Names = ReadonlyMap<string, string>

const parseAudit = createParser(ListAudit)
const parseDeliveries = createParser(ListDeliveries)
const parseKeys = createParser(ListAllKeys)

/** Returns a table of uploads. */
export function showUploads (
  context: Context, rows: readonly UploadRow[], names: Names, { hidesOwner = false } = {}
): Html {
  const { path, caller } = context
  const api = `${path.replace(/\/console$/, '')}/api/uploads`
  return table({
    caption: 'Files',
    hidesCaption: true,
    columns: [
      {
        title: 'Name',
        cell: ({ id, filename, isPrivate }) =>
          isPrivate ? showText(filename) : html`<a href="${api}/${id}" rel="noopener">${showText(filename)}</a>`,
        isHeader: true,
      },
      ...hidesOwner ? [] : [{ title: 'Owner', cell: ({ userId }: UploadRow) => linkToUser(context, userId, names) }],
      { title: 'Type', cell: ({ mediaType, isPrivate }) => html`${mediaType} ${isPrivate && badge('private')}` },
      { title: 'Size', cell: ({ size }) => showBytes(Number(size)), isNumber: true },
      { title: 'Uploaded', cell: ({ createdAt }) => showTime(createdAt) },
      {
        title: 'Actions',
        cell: ({ id, filename, userId, rowVersion }) => caller.allows('uploads:delete', { ownerId: userId! }) &&
          dangerForm(`${path}/uploads/${id}/delete`, {
            id: `delete-${id}`,
            text: 'Delete',
            confirmation: `Delete ${filename}`,
            fields: { version: entityTag(rowVersion) },
          }),
      },
    ],
    rows,
  })
}

/** Returns a table of posts. */
export function showPosts (
  context: Context, rows: readonly ListedPost[], names: Names, { hidesOwner = false } = {}
): Html {
  const { path, caller } = context
  return table({
    caption: 'Posts',
    hidesCaption: true,
    columns: [
      { title: 'Title', cell: ({ id, title = '' }) => html`<a href="${path}/posts/${id}">${showText(title)}</a>`, isHeader: true },
      ...hidesOwner ? [] : [{ title: 'Author', cell: ({ authorId }: ListedPost) => linkToUser(context, authorId ?? null, names) }],
      { title: 'Created', cell: ({ createdAt }) => showTime(createdAt!) },
      {
        title: 'Actions',
        cell: ({ id, title = '', authorId, rowVersion }) => caller.allows('posts:delete', { ownerId: authorId }) &&
          dangerForm(`${path}/posts/${id}/delete`, {
            id: `delete-${id}`,
            text: 'Delete',
            confirmation: `Delete ${title}`,
            fields: { version: entityTag(rowVersion!) },
          }),
      },
    ],
    rows,
  })
}

/** Returns a table of entries of the account log. */
export function showEntries (
  context: Context, rows: readonly AuditEntryRow[], names: Names, { hidesUser = false } = {}
): Html {
  if (rows.length === 0) return emptyState({ title: 'No entry' })
  return table({
    caption: 'Account log',
    hidesCaption: true,
    columns: [
      { title: 'When', cell: ({ at }) => showTime(at) },
      { title: 'Action', cell: ({ action }) => html`<code>${action}</code>`, isHeader: true },
      { title: 'By', cell: ({ actorId, keyId }) => html`${linkToUser(context, actorId, names)} ${keyId !== null && badge('API key')}` },
      ...hidesUser ? [] : [{ title: 'About', cell: ({ userId }: AuditEntryRow) => linkToUser(context, userId, names) }],
      { title: 'From', cell: ({ address, userAgent }) => html`${address || '–'}<br><span class="muted">${showAgent(userAgent)}</span>` },
    ],
    rows,
  })
}

const placeOf = (after: string | undefined) => after === undefined ? undefined : decodeCursor(after)

const empty = (title: string): Html => emptyState({ title })

/** Returns the lists of the console, by their paths, and what their forms do. */
export function createLists (app: FastifyInstance) {
  const {
    usherAdmin: admin, usherAudit: audit, usherUsers: users, usherSignIn: { apiKeys, providers },
    usherOptions: { without, publicUrl = '', prefix },
  } = app
  const uploads = without.includes('uploads') ? undefined : app.usherUploads
  const posts = without.includes('posts') ? undefined : app.usherPosts

  const pages: Record<string, Render> = {
    '/log': async (context) => {
      const { caller, query } = context
      const { user, action, after } = query
      const asked = parseAudit({
        ...user && { user: user.trim().toLowerCase() }, ...action && { action }, limit: ROWS_PER_PAGE,
      })
      const { rows, next } = await audit.list(caller, { ...asked, after: placeOf(after) })
      const names = await readNames(context, users.records, rows.flatMap(({ actorId, userId }) => [actorId, userId]))
      return {
        section: 'log',
        title: 'Account log',
        content: html`
<form class="filters" method="get" role="search" aria-label="Account log">
${field({ name: 'user', label: 'Id of the user', value: user ?? '', attributes: { autocomplete: 'off', spellcheck: 'false' } })}
${field({
  name: 'action',
  label: 'Action',
  value: action ?? '',
  options: [{ value: '', text: 'any' }, ...auditActions.toSorted().map((value) => ({ value, text: value }))],
})}
<div class="actions">${button('Search', { kind: 'plain' })}<a href="${context.path}/log">Reset</a></div></form>
${showEntries(context, rows, names)}${showPages(context, '/log', next && encodeCursor(next))}`,
      }
    },

    '/deliveries': async (context) => {
      const { caller, path, query: { kind, after } } = context
      const { rows, next } = await admin.listDeliveries(caller, parseDeliveries({
        ...kind && { kind }, ...after !== undefined && { after }, limit: ROWS_PER_PAGE,
      }))
      const names = await readNames(context, users.records, rows.map(({ userId }) => userId))
      return {
        section: 'deliveries',
        title: 'Failed deliveries',
        content: html`
<form class="filters" method="get" role="search" aria-label="Failed deliveries">${field({
  name: 'kind',
  label: 'What',
  value: kind ?? '',
  options: [{ value: '', text: 'events and mails' }, { value: 'event', text: 'events' }, { value: 'mail', text: 'mails' }],
})}<div class="actions">${button('Show', { kind: 'plain' })}</div></form>
<p class="hint">Events and mails that were given up. Events are listed for 30 days, mails for three. A mail whose link has become void is not sent.</p>
${rows.length === 0
  ? empty('Nothing has failed')
  : table({
    caption: 'Failed deliveries',
    hidesCaption: true,
    columns: [
      { title: 'What', cell: ({ kind, type }) => kind === 'mail' ? 'mail' : html`<code>${type}</code>`, isHeader: true },
      { title: 'To', cell: ({ kind, consumer, recipient }) => kind === 'mail' ? showText(recipient ?? '–') : consumer },
      { title: 'User', cell: ({ userId }) => linkToUser(context, userId, names) },
      { title: 'Error', cell: ({ error, attempts }) => html`${showText(error)}<br><span class="muted">${showNumber(attempts)} attempts</span>` },
      { title: 'Given up', cell: ({ failedAt }) => showTime(failedAt) },
      {
        title: 'Actions',
        cell: ({ id, type }) => html`${buttonForm(`${path}/deliveries/${id}/retry`, 'Retry', { label: `Retry ${type}` })} ${
          buttonForm(`${path}/deliveries/${id}/discard`, 'Discard', { label: `Discard ${type}` })}`,
      },
    ],
    rows,
  })}${showPages(context, '/deliveries', next)}`,
      }
    },

    '/keys': async (context) => {
      const { caller, path, query: { after } } = context
      const { limit } = parseKeys({ limit: ROWS_PER_PAGE })
      const { rows, next } = await admin.listKeys(caller, { limit, after: placeOf(after) })
      const names = await readNames(context, users.records, rows.map(({ userId }) => userId))
      return {
        section: 'keys',
        title: 'API keys',
        content: html`<p class="hint">Keys of service users are created on their page.</p>${rows.length === 0
          ? empty('No API key')
          : table({
            caption: 'API keys',
            hidesCaption: true,
            columns: [
              { title: 'Name', cell: ({ name }) => showText(name), isHeader: true },
              { title: 'User', cell: ({ userId }) => linkToUser(context, userId, names) },
              { title: 'Permits', cell: ({ actions }) => actions === null ? 'all' : actions.join(', ') },
              { title: 'Used', cell: ({ lastUsedAt }) => showTime(lastUsedAt) },
              { title: 'Expires', cell: ({ expiresAt }) => expiresAt === null ? 'never' : showTime(expiresAt) },
              {
                title: 'Actions',
                cell: ({ id, userId, name }) => dangerForm(`${path}/keys/${userId}/${id}/delete`, {
                  id: `delete-${id}`, text: 'Delete', confirmation: `Delete ${name}`, option: uploads && REVOKE_LINKS,
                }),
              },
            ],
            rows,
          })}${showPages(context, '/keys', next && encodeCursor(next))}`,
      }
    },

    '/providers': async ({ caller }) => {
      caller.authorize('service:read')
      const all = providers.list()
      return {
        section: 'providers',
        title: 'Providers',
        content: html`<p class="hint">Users sign in with these. They are set by options or settings.</p>${all.length === 0
          ? empty('No provider')
          : table({
            caption: 'Providers',
            hidesCaption: true,
            columns: [
              { title: 'Name', cell: ({ name }) => name, isHeader: true },
              { title: 'Id', cell: ({ id }) => html`<code>${id}</code>` },
              { title: 'Address for the provider', cell: ({ id }) => html`<code>${publicUrl}${prefix}/api/auth/providers/${id}/callback</code>` },
            ],
            rows: all,
          })}`,
      }
    },

    '/settings': async ({ caller }) => {
      const settings = admin.settings(caller)
      return {
        section: 'settings',
        title: 'Settings',
        content: html`<p class="hint">The effective settings of this node. They are read at its start; secrets are masked.</p>${
          settings.length === 0
            ? empty('A host has mounted Usher, and its options are in its code')
            : table({
              caption: 'Settings',
              hidesCaption: true,
              columns: [
                { title: 'Setting', cell: ({ name }) => html`<code>${name}</code>`, isHeader: true },
                { title: 'Value', cell: ({ value }) => value === null || value === '' ? html`<span class="muted">not set</span>` : showText(value) },
                { title: 'Source', cell: ({ source }) => source === 'default' ? html`<span class="muted">default</span>` : badge(source, 'info') },
              ],
              rows: settings,
            })}`,
      }
    },
  }

  const forms: Record<string, (context: Context, typed: Form) => Promise<string>> = {
    '/deliveries/:item/retry': async ({ caller, params }) => {
      await admin.retryDelivery(caller, params['item']!)
      return 'deliveries?done=retried'
    },
    '/deliveries/:item/discard': async ({ caller, params }) => {
      await admin.discardDelivery(caller, params['item']!)
      return 'deliveries?done=discarded'
    },
    '/keys/:owner/:item/delete': async ({ caller, params }, { revokeLinks }) => {
      const given = { revokesLinks: revokeLinks === 'yes' }
      await apiKeys.delete(caller, params['owner']!.toLowerCase(), params['item']!.toLowerCase(), given)
      return 'keys?done=key-deleted'
    },
  }

  if (uploads) {
    pages['/uploads'] = async (context) => {
      const { caller, query: { user, after } } = context
      const { rows, next } = await uploads.list(caller, {
        user: user || 'all', limit: ROWS_PER_PAGE, after: placeOf(after),
      })
      const names = await readNames(context, users.records, rows.map(({ userId }) => userId))
      const { bytes } = await admin.storage(caller)
      return {
        section: 'uploads',
        title: 'Files',
        content: html`<p class="hint">${bytes === null ? 'Their size is not measured yet.' : `All files take ${showBytes(bytes)}.`}</p>
${rows.length === 0 ? empty('No file') : showUploads(context, rows, names)}
${showPages(context, '/uploads', next && encodeCursor(next))}`,
      }
    }
    forms['/uploads/:item/delete'] = async ({ caller, params }, { version }) => {
      await uploads.delete(caller, params['item']!, { match: readIfMatch(version ?? '""', 'version') })
      return 'uploads?done=file-deleted'
    }
  }

  if (posts) {
    pages['/posts'] = async (context) => {
      const { caller, query: { author, after } } = context
      const authorId = author?.toLowerCase() || undefined
      const { rows, next } = await posts.reads.list(caller, {
        fields: ['position', 'epoch', 'authorId', 'title', 'createdAt', 'rowVersion'],
        authorId,
        limit: ROWS_PER_PAGE,
        after: after === undefined ? undefined : decodePlace(after).position,
      })
      const names = await readNames(context, users.records, rows.map((row) => row.authorId))
      return {
        section: 'posts',
        title: 'Posts',
        content: html`${rows.length === 0 ? empty('No post') : showPosts(context, rows, names)}
${showPages(context, '/posts', next && encodePlace(rows.at(-1) as PostRow))}`,
      }
    }
    pages['/posts/:item'] = async (context) => {
      const { caller, path, params } = context
      const post = await posts.reads.get(caller, params['item']!.toLowerCase())
      if (!post) throw new PostNotFound()
      const names = await readNames(context, users.records, [post.authorId])
      return {
        section: 'posts',
        title: post.title,
        crumbs: [{ href: `${path}/posts`, text: 'Posts' }],
        content: html`<p class="hint">${linkToUser(context, post.authorId, names)}, ${showTime(post.createdAt)}</p>
${card(html`<div class="text" dir="auto">${post.content}</div>`)}
${caller.allows('posts:delete', { ownerId: post.authorId }) && dangerForm(`${path}/posts/${post.id}/delete`, {
  id: 'confirm-delete', text: 'Delete this post', confirmation: `Delete ${post.title}`, fields: { version: entityTag(post.rowVersion) },
})}`,
      }
    }
    forms['/posts/:item/delete'] = async ({ caller, params }, { version }) => {
      await posts.changes.delete(caller, params['item']!.toLowerCase(), { ifMatch: version ?? '""' })
      return 'posts?done=post-deleted'
    }
  }
  return { pages, forms }
}

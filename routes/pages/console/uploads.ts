import type { FastifyInstance } from 'fastify'
import { SEARCHED_UPLOADS } from '../../../db/uploads/search-uploads.ts'
import type { UploadRow } from '../../../db/uploads/uploads.ts'
import { decodeCursor, encodeCursor } from '../../../schema/http/cursor.ts'
import { entityTag, readIfMatch } from '../../../schema/http/entity-tag.ts'
import { isShown } from '../../../schema/uploads/upload.ts'
import { badge, emptyState, table } from '../components.ts'
import { html, type Html } from '../html.ts'
import { pickable, pickColumn, type Bulk } from './bulk.ts'
import { ROWS_PER_PAGE, type Context, type Render, type Submit } from './context.ts'
import { icon } from './icons.ts'
import { ask, menuColumn, menuLink, rowMenu } from './questions.ts'
import { createGuideLink, linkToUser, readNames, searchForm, showPages, showText } from './shown.ts'

// Images that are larger are not loaded for a list.
const SHOWN_BYTES = 2 * 1024 * 1024

/** Returns the pages of files, and what their forms do. */
export function createUploadPages (app: FastifyInstance) {
  const {
    usherUsers: users, usherUploads: uploads, usherAdmin: admin, usherAccess: { policy },
    usherOptions: { publicPath, s3 },
  } = app
  // The session of the console is worth nothing to the API, so it gets what anybody gets. Images of another origin are
  // against the policy of the page.
  const showsImages = policy.isOpen('uploads:read') && s3 === undefined

  const guideLink = createGuideLink(app.usherOptions)

  const bulk: Bulk = {
    section: 'uploads',
    address: '/uploads',
    title: 'filesTitle',
    actions: {
      delete: {
        text: 'bulkDelete',
        ask: 'askDeleteFiles',
        hint: 'hintDelete',
        isDanger: true,
        needs: 'uploads:delete',
        run: ({ caller }, id, version) => uploads.delete(caller, id, { match: readIfMatch(version, 'version') }),
      },
    },
    async namesOf ({ caller }, ids) {
      const ignore = (error: { statusCode?: number }): void => {
        if (![403, 404].includes(error.statusCode!)) throw error
      }
      const found = await Promise.all(ids.map((id) => uploads.get(caller, id).catch(ignore)))
      return new Map(found.filter((upload) => upload !== undefined).map(({ id, filename }) => [id, filename]))
    },
  }

  function preview ({ id, mediaType, size, isPrivate }: UploadRow): Html {
    if (isPrivate) return html`<span class="thumb">${icon('lock')}</span>`
    return showsImages && isShown(mediaType) && mediaType.startsWith('image/') && Number(size) <= SHOWN_BYTES
      ? html`<span class="thumb"><img src="${publicPath}/api/uploads/${id}" alt="" width="40" height="40" loading="lazy" decoding="async"></span>`
      : html`<span class="thumb">${icon('file')}</span>`
  }

  /** Returns the files of a user, or of all, which can be searched and selected. */
  async function showList (
    context: Context, { userId, address }: { userId?: string | undefined, address: string }
  ): Promise<Html> {
    const { caller, path, query: { q = '', after }, words, words: { t } } = context
    const asked = {
      user: userId ?? 'all', limit: ROWS_PER_PAGE, after: after === undefined ? undefined : decodeCursor(after),
    }
    const found = q.trim() === ''
      ? { ...await uploads.list(caller, asked), isPart: false }
      : await uploads.search(caller, { ...asked, q: q.trim() })
    const names = userId === undefined
      ? await readNames(context, users.records, found.rows.map((row) => row.userId))
      : new Map<string, string>()
    return html`<div id="results">${found.rows.length === 0
      ? emptyState(found.isPart || q.trim() !== ''
        ? { title: t.noFile, text: found.isPart ? t.laterPages : t.noneFoundHint }
        : { title: t.noFile, text: t.noFileHint, actions: guideLink('client', t.clientGuide) })
      : pickable(context, bulk, table<UploadRow>({
        caption: t.filesTitle,
        hidesCaption: true,
        columns: [
          pickColumn(context, ({ id, filename: name, rowVersion }) => ({ id, name, version: entityTag(rowVersion) })),
          {
            title: t.name,
            isHeader: true,
            kind: 'file wide',
            cell: (upload) => html`<span class="with-thumb">${preview(upload)}<span class="main">${upload.isPrivate
              ? html`<span>${showText(upload.filename)} ${badge(t.filePrivate)}</span>`
              : html`<a href="${publicPath}/api/uploads/${upload.id}" rel="noopener">${showText(upload.filename)}</a>`}${
              upload.description !== '' && html`<span class="muted excerpt" dir="auto">${upload.description}</span>`}</span></span>`,
          },
          ...userId !== undefined
            ? []
            : [{ title: t.ownerColumn, cell: (row: UploadRow) => linkToUser(context, row.userId, names) }],
          { title: t.typeColumn, cell: ({ mediaType }) => html`<span class="muted type" title="${mediaType}">${mediaType}</span>` },
          { title: t.sizeColumn, cell: ({ size }) => words.bytes(Number(size)), isNumber: true },
          { title: t.uploadedColumn, cell: ({ createdAt }) => words.ago(createdAt) },
          menuColumn(context, ({ id, filename: name, isPrivate, userId: ownerId }) => rowMenu(context, { id, name }, [
            !isPrivate && menuLink(`${publicPath}/api/uploads/${id}`, t.fileOpen),
            caller.allows('uploads:delete', { ownerId: ownerId ?? undefined }) && menuLink(`${path}/uploads/${id}/delete`, t.bulkDelete, { isDanger: true }),
          ])),
        ],
        rows: found.rows,
      }))}
${found.isPart && html`<p class="hint">${words.format('searchedPart', { count: words.number(SEARCHED_UPLOADS) })}</p>`}
${showPages(context, address, { next: found.next && encodeCursor(found.next), count: found.rows.length })}</div>`
  }

  const list: Render = async (context) => {
    const { caller, path, query: { q = '', user }, words, words: { t } } = context
    const userId = user?.toLowerCase() || undefined
    const names = await readNames(context, users.records, [userId])
    const showsTotal = userId === undefined && caller.allows('service:read')
    const stored = showsTotal ? await admin.storage(caller) : undefined
    return {
      section: 'uploads',
      title: t.filesTitle,
      content: html`${searchForm(context, '/uploads', {
        label: t.filesTitle,
        search: { label: t.searchFiles, value: q, placeholder: t.searchPart },
        keeps: { user: userId },
      })}
${userId !== undefined && html`<p class="hint">${words.phrase('ofOneUser', { name: linkToUser(context, userId, names) })} <a href="${path}/uploads">${t.showAll}</a></p>`}
${showsTotal && html`<p class="total muted">${stored
  ? words.format('allFilesTake', { count: stored.files, size: words.bytes(stored.bytes) })
  : t.sizeNotMeasured}</p>`}
${await showList(context, { userId, address: '/uploads' })}`,
    }
  }

  const question: Render = async (context, outcome = {}) => {
    const { caller, path, params, words, words: { t } } = context
    const upload = await uploads.get(caller, params['item']!.toLowerCase())
    caller.authorize('uploads:delete', { ownerId: upload.userId ?? undefined })
    return ask(context, outcome, {
      title: words.format('deleteThis', { name: upload.filename }),
      text: t.hintDelete,
      button: t.bulkDelete,
      isDanger: true,
      fields: { version: entityTag(upload.rowVersion) },
    }, { action: `${path}/uploads/${upload.id}/delete`, section: 'uploads', crumbs: [{ href: `${path}/uploads`, text: t.filesTitle }] })
  }

  const remove: Submit = async ({ caller, params, path }, { version }) => {
    await uploads.delete(caller, params['item']!, { match: readIfMatch(version ?? '""', 'version') })
    return `${path}/uploads?done=file-deleted`
  }

  return { bulk, showList, list, question, remove }
}

import type { FastifyInstance } from 'fastify'
import type { AuditEntryRow } from '../../../db/audit/audit.ts'
import { auditActions, ListAudit, type AuditAction } from '../../../schema/audit/audit.ts'
import { decodeCursor, encodeCursor } from '../../../schema/http/cursor.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { badge, emptyState, field, table } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'
import { addressOf, ROWS_PER_PAGE, type Context, type Render } from './context.ts'
import { separator } from './layout.ts'
import {
  findUserId, linkToOrganization, linkToUser, readNames, readOrganizationNames, searchForm, showAgent, showPages,
} from './shown.ts'
import type { ConsoleText } from './words.ts'

const parseAudit = createParser(ListAudit)

interface Names { users: ReadonlyMap<string, string>, organizations: ReadonlyMap<string, string> }

/** Reads the names of the users and organisations in entries, in one statement each. */
async function namesOf (context: Context, app: FastifyInstance, rows: readonly AuditEntryRow[]): Promise<Names> {
  const operations = app.usherOptions.organizations && app.usherOrganizations.operations
  const [users, organizations] = await Promise.all([
    readNames(context, app.usherUsers.records, rows.flatMap(({ actorId, userId }) => [actorId, userId])),
    readOrganizationNames(context, operations, rows.map(({ organizationId }) => organizationId)),
  ])
  return { users, organizations }
}

/** Returns what an entry of the account log says, as a sentence with links to users and to the organisation. */
export function showSentence (
  context: Context, { action, actorId, userId, organizationId }: AuditEntryRow, names: Names
): Html {
  const { words, words: { t } } = context
  const isByAnother = actorId !== null && userId !== null && actorId !== userId && `other ${action}` in t
  const person = (id: string | null, other: HtmlValue) => id === null ? other : linkToUser(context, id, names.users)
  // Some are about nobody: the account that was tried does not exist.
  const nobody = action.startsWith('login') || action.startsWith('password') ? t.unknownAccount : t.somebody
  const sentence = words.phrase((isByAnother ? `other ${action}` : `entry ${action}`) as ConsoleText, {
    actor: person(actorId, t.somebody), user: person(userId ?? actorId, nobody),
  })
  return organizationId === null
    ? sentence
    : html`${sentence}${separator}${linkToOrganization(context, organizationId, names.organizations)}`
}

// What a reader has to notice.
const isAlarming = (action: AuditAction): boolean =>
  /failed|denied|throttled|reuse/.test(action)

/** Returns a table of entries of the account log. */
function showEntries (context: Context, rows: readonly AuditEntryRow[], names: Names): Html {
  const { words, words: { t }, path } = context
  if (rows.length === 0) return emptyState({ title: t.noEntry, text: t.noneFoundHint })
  return table<AuditEntryRow>({
    caption: t.ofAudit,
    hidesCaption: true,
    columns: [
      {
        title: t.logWhat,
        isHeader: true,
        kind: 'wide sentence',
        cell: (entry) => html`<span class="dot ${isAlarming(entry.action) ? 'bad' : 'plain'}" aria-hidden="true"></span><span>${
          showSentence(context, entry, names)} ${entry.keyId !== null && badge(t.logByKey)} <a class="code muted" href="${
          addressOf(`${path}/log`, { action: entry.action })}">${entry.action}</a></span>`,
      },
      { title: t.logWhen, cell: ({ at }) => words.time(at) },
      {
        title: t.logFrom,
        kind: 'from',
        cell: ({ address, userAgent }) => html`<span class="muted">${address || '–'}${
          userAgent !== '' && html`${separator}${showAgent(words, userAgent)}`}</span>`,
      },
    ],
    rows,
  })
}

/** Returns the pages of the account log. */
export function createLogPages (app: FastifyInstance) {
  const { usherAudit: audit, usherUsers: users } = app

  /** Returns the entries about a user, or all. */
  async function showList (
    context: Context,
    { user, action, address }: { user?: string | undefined, action?: string | undefined, address: string }
  ): Promise<Html> {
    const { caller, query: { after } } = context
    const asked = parseAudit({ ...user && { user }, ...action && { action }, limit: ROWS_PER_PAGE })
    const { rows, next } = await audit.list(caller, {
      ...asked, after: after === undefined ? undefined : decodeCursor(after),
    })
    return html`${showEntries(context, rows, await namesOf(context, app, rows))}${showPages(context, address, { next: next && encodeCursor(next), count: rows.length })}`
  }

  const list: Render = async (context) => {
    const { query: { user = '', action = '' }, words: { t } } = context
    return {
      section: 'log',
      title: t.ofAudit,
      content: html`${searchForm(context, '/log', {
        label: t.ofAudit,
        filters: html`${field({
  name: 'user', label: t.userColumn, value: user, attributes: { placeholder: t.logUser, autocomplete: 'off', spellcheck: 'false' },
})}
${field({
  name: 'action',
  label: t.logAction,
  value: action,
  options: [{ value: '', text: t.anyValue }, ...auditActions.toSorted().map((value) => ({ value, text: value }))],
})}`,
      })}
${await showList(context, { user: user === '' ? undefined : await findUserId(context, users, user), action, address: '/log' })}`,
    }
  }

  /** Returns the newest entries of all, in short. */
  async function showRecent (context: Context, count: number): Promise<Html> {
    const { caller, words, words: { t } } = context
    const { rows } = await audit.list(caller, { limit: count })
    const names = await namesOf(context, app, rows)
    return rows.length === 0
      ? emptyState({ title: t.noEntry })
      : html`<ul class="recent">${rows.map((entry) => html`<li><span class="dot ${
        isAlarming(entry.action) ? 'bad' : 'plain'}" aria-hidden="true"></span><span><span class="what">${
        showSentence(context, entry, names)}</span><span class="muted">${words.ago(entry.at)}</span></span></li>`)}</ul>`
  }

  return { list, showList, showRecent }
}

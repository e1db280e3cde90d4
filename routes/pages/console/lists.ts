import type { FastifyInstance } from 'fastify'
import type { FailedDeliveryRow } from '../../../db/admin/deliveries.ts'
import type { ApiKeyRow } from '../../../db/sign-in/api-keys.ts'
import { ListAllKeys, ListDeliveries } from '../../../schema/admin/admin.ts'
import { decodeCursor, encodeCursor } from '../../../schema/http/cursor.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { badge, buttonLink, emptyState, table } from '../components.ts'
import { hasGuide } from '../guide.ts'
import { html, type Html } from '../html.ts'
import { addressOf, ROWS_PER_PAGE, type Render, type Submit } from './context.ts'
import { pills } from './layout.ts'
import {
  buttonForm, dangerForm, linkToOrganization, linkToUser, readNames, readOrganizationNames, revokeLinks, showPages,
  showText,
} from './shown.ts'
import type { Words } from './words.ts'

const parseDeliveries = createParser(ListDeliveries)
const parseKeys = createParser(ListAllKeys)

const SHOWN_ACTIONS = 3

/** Returns what a key permits, in as much space as a cell has. */
function showActions ({ t }: Words, actions: readonly string[] | null): Html {
  if (actions === null) return badge(t.keyAll, 'warning')
  return html`<div class="badges">${actions.slice(0, SHOWN_ACTIONS).map((action) => html`<code class="badge">${action}</code> `)}${
    actions.length > SHOWN_ACTIONS && html`<details><summary>+${actions.length - SHOWN_ACTIONS}</summary>${
      actions.slice(SHOWN_ACTIONS).map((action) => html`<code class="badge">${action}</code> `)}</details>`}</div>`
}

/** Returns the lists about the service, by their paths, and what their forms do. */
export function createLists (app: FastifyInstance) {
  const {
    usherAdmin: admin, usherUsers: users, usherSignIn: { apiKeys, providers },
    usherOptions: { organizations, without, publicUrl = '', publicPath, prefix },
  } = app
  const operations = organizations && app.usherOrganizations.operations
  const hasUploads = !without.includes('uploads')

  const pages: Record<string, Render> = {
    '/deliveries': async (context) => {
      const { caller, path, query: { kind = '', after }, words, words: { t } } = context
      const { rows, next } = await admin.listDeliveries(caller, parseDeliveries({
        ...kind && { kind }, ...after !== undefined && { after }, limit: ROWS_PER_PAGE,
      }))
      const names = await readNames(context, users.records, rows.map(({ userId }) => userId))
      return {
        section: 'deliveries',
        title: t.navDeliveries,
        content: html`<p class="lead">${t.deliveriesHint}</p>
${pills(t.deliveryWhat, ([['', t.deliveryBoth], ['event', t.deliveryEvents], ['mail', t.deliveryMails]] as const)
  .map(([value, text]) => ({ href: addressOf(`${path}/deliveries`, { kind: value }), text, isCurrent: kind === value })))}
${rows.length === 0
  ? emptyState({ title: t.deliveriesNone, text: t.deliveriesNoneHint })
  : table<FailedDeliveryRow>({
    caption: t.navDeliveries,
    hidesCaption: true,
    columns: [
      {
        title: t.deliveryWhat,
        isHeader: true,
        cell: ({ kind, type }) => kind === 'mail' ? t.deliveryMail : html`<code>${type}</code>`,
      },
      { title: t.deliveryTo, kind: 'wide', cell: ({ kind, consumer, recipient }) => showText(kind === 'mail' ? recipient ?? '–' : consumer) },
      { title: t.userColumn, cell: ({ userId }) => linkToUser(context, userId, names) },
      {
        title: t.deliveryError,
        kind: 'wide',
        cell: ({ error, attempts }) => html`${showText(error)}<br><span class="muted">${words.format('deliveryAttempts', { count: attempts })}</span>`,
      },
      { title: t.deliveryGivenUp, cell: ({ failedAt }) => words.ago(failedAt) },
      {
        title: t.actionsColumn,
        hidesTitle: true,
        kind: 'do',
        cell: ({ id, type }) => html`${caller.allows('deliveries:retry') &&
          buttonForm(`${path}/deliveries/${id}/retry`, t.deliveryRetry, { label: `${t.deliveryRetry}: ${type}` })} ${
          caller.allows('deliveries:discard') &&
          buttonForm(`${path}/deliveries/${id}/discard`, t.mayDiscard, { kind: 'link', label: `${t.mayDiscard}: ${type}` })}`,
      },
    ],
    rows,
  })}${showPages(context, '/deliveries', next)}`,
      }
    },

    '/keys': async (context) => {
      const { caller, path, query: { after }, words, words: { t } } = context
      const { limit } = parseKeys({ limit: ROWS_PER_PAGE })
      const { rows, next } = await admin.listKeys(caller, {
        limit, after: after === undefined ? undefined : decodeCursor(after),
      })
      const [names, ofOrganizations] = await Promise.all([
        readNames(context, users.records, rows.map(({ userId }) => userId)),
        readOrganizationNames(context, operations, rows.map(({ organizationId }) => organizationId)),
      ])
      return {
        section: 'keys',
        title: t.keysTitle,
        content: html`<p class="lead">${t.keysOfServices}</p>${rows.length === 0
          ? emptyState({ title: t.noKey })
          : table<ApiKeyRow & { userId: string }>({
            caption: t.keysTitle,
            hidesCaption: true,
            columns: [
              {
                title: t.name,
                isHeader: true,
                cell: ({ name, organizationId }) => html`${showText(name)}${organizationId !== null &&
                  html`<br><span class="muted">${linkToOrganization(context, organizationId, ofOrganizations)}</span>`}`,
              },
              { title: t.userColumn, cell: ({ userId }) => linkToUser(context, userId, names) },
              { title: t.keyPermits, kind: 'wide', cell: ({ actions }) => showActions(words, actions) },
              { title: t.keyUsed, cell: ({ lastUsedAt }) => words.ago(lastUsedAt) },
              { title: t.keyExpires, cell: ({ expiresAt }) => expiresAt === null ? badge(t.keyNever, 'warning') : words.date(expiresAt) },
              {
                title: t.actionsColumn,
                hidesTitle: true,
                kind: 'do',
                cell: ({ id, userId, name }) => caller.allows('api-keys:delete', { ownerId: userId }) && dangerForm(`${path}/keys/${userId}/${id}/delete`, {
                  id: `delete-${id}`,
                  text: t.keyDelete,
                  confirmation: words.format('deleteThis', { name }),
                  option: hasUploads ? revokeLinks(words) : undefined,
                }),
              },
            ],
            rows,
          })}${showPages(context, '/keys', next && encodeCursor(next))}`,
      }
    },

    '/providers': async ({ caller, words: { t } }) => {
      const guide = hasGuide && !without.includes('docs') && `${publicPath}/docs/guide/providers`
      caller.authorize('service:read')
      const all = providers.list()
      return {
        section: 'providers',
        title: t.navProviders,
        content: html`<p class="lead">${t.providersText}</p>${all.length === 0
          ? emptyState({
            title: t.noProvider, text: t.noProviderHint, actions: guide && buttonLink(guide, t.providerGuide, { kind: 'plain' }),
          })
          : table({
            caption: t.navProviders,
            hidesCaption: true,
            columns: [
              { title: t.name, cell: ({ name }) => name, isHeader: true },
              { title: t.factId, cell: ({ id }) => html`<code>${id}</code>` },
              {
                title: t.providerAddress,
                kind: 'wide',
                cell: ({ id }) => html`<code>${publicUrl}${prefix}/api/auth/providers/${id}/callback</code>`,
              },
            ],
            rows: all,
          })}`,
      }
    },
  }

  const forms: Record<string, Submit> = {
    '/deliveries/:item/retry': async ({ caller, params, path }) => {
      await admin.retryDelivery(caller, params['item']!)
      return `${path}/deliveries?done=retried`
    },
    '/deliveries/:item/discard': async ({ caller, params, path }) => {
      await admin.discardDelivery(caller, params['item']!)
      return `${path}/deliveries?done=discarded`
    },
    '/keys/:owner/:item/delete': async ({ caller, params, path }, { revokeLinks }) => {
      const given = { revokesLinks: revokeLinks === 'yes' }
      await apiKeys.delete(caller, params['owner']!.toLowerCase(), params['item']!.toLowerCase(), given)
      return `${path}/keys?done=key-deleted`
    },
  }

  return { pages, forms }
}

import type { FastifyInstance } from 'fastify'
import type { FailedDeliveryRow } from '../../../db/admin/deliveries.ts'
import type { ApiKeyRow } from '../../../db/sign-in/api-keys.ts'
import { ListAllKeys, ListDeliveries } from '../../../schema/admin/admin.ts'
import { decodeCursor, encodeCursor } from '../../../schema/http/cursor.ts'
import { ApiKeyNotFound } from '../../../schema/sign-in/api-keys.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { badge, emptyState, table } from '../components.ts'
import { html, type Html } from '../html.ts'
import { addressOf, ROWS_PER_PAGE, type Render, type Submit } from './context.ts'
import { pills } from './layout.ts'
import { ask, menuButton, menuColumn, menuLink, rowMenu } from './questions.ts'
import {
  createGuideLink, linkToOrganization, linkToUser, readNames, readOrganizationNames, revokeLinks, showCopied, showPages,
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
    usherOptions: options, usherOptions: { organizations, without, publicUrl = '', prefix },
  } = app
  const operations = organizations && app.usherOrganizations.operations
  const guideLink = createGuideLink(options)
  const hasWebhooks = options.webhooks.length > 0
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
  ? emptyState({
    title: t.deliveriesNone,
    text: hasWebhooks ? t.deliveriesNoneHint : t.noWebhookHint,
    actions: !hasWebhooks && guideLink('host/events', t.webhookGuide),
  })
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
      menuColumn(context, ({ id, type }) => rowMenu(context, { id, name: type }, [
        caller.allows('deliveries:retry') && menuButton(`${path}/deliveries/${id}/retry`, t.deliveryRetry),
        caller.allows('deliveries:discard') && menuButton(`${path}/deliveries/${id}/discard`, t.mayDiscard),
      ])),
    ],
    rows,
  })}${showPages(context, '/deliveries', { next, count: rows.length })}`,
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
          ? emptyState({ title: t.noKey, text: t.noKeyHint, actions: guideLink('api-keys', t.keyGuide) })
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
              menuColumn(context, ({ id, userId, name }) => caller.allows('api-keys:delete', { ownerId: userId }) && rowMenu(context, { id, name }, [
                menuLink(`${path}/keys/${userId}/${id}/delete`, t.keyDelete, { isDanger: true }),
              ])),
            ],
            rows,
          })}${showPages(context, '/keys', { next: next && encodeCursor(next), count: rows.length })}`,
      }
    },

    '/providers': async ({ caller, words, words: { t } }) => {
      caller.authorize('service:read')
      const all = providers.list()
      return {
        section: 'providers',
        title: t.navProviders,
        content: html`<p class="lead">${t.providersText}</p>${all.length === 0
          ? emptyState({
            title: t.noProvider, text: t.noProviderHint, actions: guideLink('providers', t.providerGuide),
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
                cell: ({ id }) => showCopied(words, `${publicUrl}${prefix}/api/auth/providers/${id}/callback`),
              },
            ],
            rows: all,
          })}`,
      }
    },
  }

  const questions: Record<string, Render> = {
    '/keys/:owner/:item/delete': async (context, outcome = {}) => {
      const { caller, params, path, words, words: { t } } = context
      const [owner, item] = [params['owner']!.toLowerCase(), params['item']!.toLowerCase()]
      caller.authorize('api-keys:delete', { ownerId: owner })
      const found = (await apiKeys.list(caller, owner)).find(({ id }) => id === item)
      if (!found) throw new ApiKeyNotFound()
      return ask(context, outcome, {
        title: words.format('deleteThis', { name: found.name }),
        text: t.keyDeleteHint,
        button: t.keyDelete,
        isDanger: true,
        option: hasUploads ? revokeLinks(words) : undefined,
      }, { action: `${path}/keys/${owner}/${item}/delete`, section: 'keys', crumbs: [{ href: `${path}/keys`, text: t.keysTitle }] })
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

  return { pages, questions, forms }
}

import type { FastifyInstance } from 'fastify'
import type { RowCount } from '../../../db/admin/counts.ts'
import { badge, card, stat } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'
import { chart } from './chart.ts'
import type { Render } from './context.ts'
import type { createLogPages } from './log.ts'
import type { Words } from './words.ts'

// One a night, and some hours more.
const OLD_BACKUP_SECONDS = 36 * 3600
const RECENT = 7

/** Something that is well, or needs a look. */
interface Check { name: string, isWell: boolean, text: HtmlValue }

/** Returns the page with the state of the service. */
export function createOverview (
  { usherAdmin: admin, usherAccess: { policy }, usherOptions: { without } }: FastifyInstance,
  log: ReturnType<typeof createLogPages>
): Render {
  return async (context) => {
    const { caller, path, words, words: { t } } = context
    const [overview, recent] = await Promise.all([
      admin.overview(caller), caller.allows('audit:read') ? log.showRecent(context, RECENT) : undefined,
    ])
    const { version, users, posts, uploads, deliveries: { failed }, days } = overview
    const today = days.at(-1)!
    const [logins, failures, signUps] =
      [weeksOf(days, 'logins'), weeksOf(days, 'failedLogins'), weeksOf(days, 'signUps')]
    return {
      section: 'overview',
      title: t.navOverview,
      content: html`
${showHealth(words, checksOf(words, overview), html`Usher ${version}, Node.js ${process.versions.node}`)}
<div class="stats">
${stat(t.ofUsers, html`<a href="${path}/users">${showCount(words, users)}</a>`, html`${
  words.format('statNew', { count: signUps.last })}${showChange(words, signUps)}`)}
${stat(t.statLogins, words.number(logins.last), html`${words.format('statToday', { count: words.number(today.logins) })}${showChange(words, logins)}`)}
${stat(t.statFailed, recent
  ? html`<a href="${path}/log?action=login.failed">${words.number(failures.last)}</a>`
  : words.number(failures.last),
html`${words.format('statToday', { count: words.number(today.failedLogins) })}${showChange(words, failures, { isBad: true })}`)}
${!without.includes('posts') && stat(t.ofPosts, html`<a href="${path}/posts">${showCount(words, posts)}</a>`)}
${!without.includes('uploads') && stat(t.filesTitle, html`<a href="${path}/uploads">${showCount(words, uploads)}</a>`,
  uploads.bytes === null ? t.sizeUnknown : words.bytes(uploads.bytes))}
${stat(t.navDeliveries, html`<a href="${path}/deliveries">${words.number(failed)}</a>`,
  failed === 0 ? t.statNone : badge(t.statLook, 'error'))}
</div>
<div class="halves">
${recent && card(html`${recent}<p class="after"><a href="${path}/log">${t.activityAll}</a></p>`, { id: 'recent', title: t.activityTitle })}
${card(html`${chart(words, {
  id: 'logins',
  title: t.chartLogins,
  days: days.map(({ day }) => day),
  series: [
    { name: t.seriesLogins, kind: 'first', values: days.map(({ logins }) => logins) },
    { name: t.seriesFailed, kind: 'second', values: days.map(({ failedLogins }) => failedLogins) },
  ],
})}${chart(words, {
  id: 'sign-ups',
  title: t.chartSignUps,
  days: days.map(({ day }) => day),
  series: [{ name: t.seriesNew, kind: 'first', values: days.map(({ signUps }) => signUps) }],
})}`, { id: 'activity', title: t.chartsTitle })}
</div>`,
    }
  }

  function checksOf (
    words: Words, { database, deliveries, backupAgeSeconds: backupAge }: Awaited<ReturnType<typeof admin.overview>>
  ): Check[] {
    const { t } = words
    const { waiting, retrying } = deliveries
    return [
      {
        name: t.healthDatabase,
        isWell: true,
        text: words.format('healthDatabaseText', {
          version: database.version, duration: words.milliseconds(database.roundTripMs),
        }),
      },
      {
        name: t.healthNotifications,
        isWell: database.notifications,
        text: database.notifications ? t.healthArriving : t.healthNotArriving,
      },
      { name: t.healthProcesses, isWell: true, text: words.format('healthProcessesText', { count: database.processes }) },
      {
        name: t.healthWaiting,
        isWell: retrying === 0,
        text: waiting === 0
          ? t.healthNothingWaits
          : words.list([
            words.format('healthWaitingText', { count: waiting }),
            ...retrying > 0 ? [words.format('healthRetrying', { count: retrying })] : [],
          ]),
      },
      {
        name: t.healthBackup,
        isWell: backupAge !== null && backupAge <= OLD_BACKUP_SECONDS,
        text: backupAge === null
          ? t.healthBackupNone
          : words.format('healthBackupAge', { duration: words.duration(backupAge) }),
      },
      ...policy.isOpen('users:read-email')
        ? [{
            name: t.healthAddresses,
            isWell: false,
            text: words.phrase('healthAddressesText', {
              setting: html`<code>EMAILS_VISIBLE_TO=owners</code>`, rule: html`<code>users:read-email</code>`,
            }),
          }]
        : [],
    ]
  }
}

// What needs a look stands there; the rest is one click away.
function showHealth (words: Words, checks: readonly Check[], version: Html): Html {
  const { t } = words
  const [bad, good] = [checks.filter(({ isWell }) => !isWell), checks.filter(({ isWell }) => isWell)]
  const row = ({ name, isWell, text }: Check): Html => html`<li><span class="dot ${
    isWell ? 'good' : 'warn'}" aria-hidden="true"></span><span><span class="strong">${name}</span><span class="muted">${text}</span></span></li>`
  return card(html`<h2 class="verdict" id="health-title" tabindex="-1"><span class="dot ${bad.length === 0 ? 'good' : 'warn'}" aria-hidden="true"></span>${
    bad.length === 0 ? t.healthGood : words.format('healthBad', { count: bad.length })}</h2>
${bad.length > 0 && html`<ul class="checks">${bad.map(row)}</ul>`}
<details><summary>${words.format('healthRest', { count: good.length })} <span class="muted">${version}</span></summary><ul class="checks">${
  good.map(row)}</ul></details>`,
  { attributes: { id: 'health', class: bad.length === 0 ? 'card health' : 'card health warn', 'aria-labelledby': 'health-title' } })
}

const showCount = (words: Words, { count, isExact }: RowCount): string =>
  isExact ? words.number(count) : words.format('about', { count: words.number(count) })

type Days = Awaited<ReturnType<FastifyInstance['usherAdmin']['overview']>>['days']

/** Counts of two weeks. */
interface Weeks { last: number, before: number }

/** Returns what happened in the last seven days that are over, and in the seven before. Today has only begun. */
function weeksOf (days: Days, what: 'logins' | 'failedLogins' | 'signUps'): Weeks {
  const sum = (some: Days): number => some.reduce((sum, day) => sum + day[what], 0)
  return { last: sum(days.slice(-8, -1)), before: sum(days.slice(-15, -8)) }
}

/**
 * Returns by how much a week differs from the one before; nothing if there is nothing to compare it with.
 * @param isBad whether more of it is worse
 */
function showChange (words: Words, { last, before }: Weeks, { isBad = false } = {}): Html | false {
  if (before === 0) return false
  const change = last / before - 1
  return html` <span class="${isBad && change > 0 ? 'change worse' : 'change'}" title="${words.t.statBefore}">${words.change(change)}</span>`
}

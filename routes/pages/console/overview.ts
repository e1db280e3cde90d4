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
    return {
      section: 'overview',
      title: t.navOverview,
      content: html`
<div class="stats">
${stat(t.ofUsers, html`<a href="${path}/users">${showCount(words, users)}</a>`, words.format('statNewToday', { count: today.signUps }))}
${stat(t.statLoginsToday, words.number(today.logins), words.format('statFailedToday', { count: today.failedLogins }))}
${!without.includes('posts') && stat(t.ofPosts, html`<a href="${path}/posts">${showCount(words, posts)}</a>`)}
${!without.includes('uploads') && stat(t.filesTitle, html`<a href="${path}/uploads">${showCount(words, uploads)}</a>`,
  uploads.bytes === null ? t.sizeUnknown : words.bytes(uploads.bytes))}
${stat(t.navDeliveries, html`<a href="${path}/deliveries">${words.number(failed)}</a>`,
  failed === 0 ? t.statNone : badge(t.statLook, 'error'))}
</div>
<div class="halves">
${showHealth(words, checksOf(words, overview), html`Usher ${version}, Node.js ${process.versions.node}`)}
${recent && card(html`${recent}<p class="after"><a href="${path}/log">${t.activityAll}</a></p>`, { id: 'recent', title: t.activityTitle })}
</div>
${card(html`<div class="halves">${chart(words, {
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
})}</div>`, { id: 'activity', title: t.chartsTitle })}`,
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

function showHealth (words: Words, checks: readonly Check[], version: Html): Html {
  const { t } = words
  const bad = checks.filter(({ isWell }) => !isWell)
  return card(html`<p class="verdict"><span class="dot ${bad.length === 0 ? 'good' : 'warn'}" aria-hidden="true"></span>${
    bad.length === 0 ? t.healthGood : words.format('healthBad', { count: bad.length })}</p>
<ul class="checks">${[...bad, ...checks.filter(({ isWell }) => isWell)].map(({ name, isWell, text }) => html`<li><span class="dot ${
  isWell ? 'good' : 'warn'}" aria-hidden="true"></span><span><span class="strong">${name}</span><span class="muted">${text}</span></span></li>`)}
<li><span class="dot plain" aria-hidden="true"></span><span><span class="strong">${t.healthVersion}</span><span class="muted">${version}</span></span></li></ul>`,
  { id: 'health', title: t.healthTitle })
}

const showCount = (words: Words, { count, isExact }: RowCount): string =>
  isExact ? words.number(count) : words.format('about', { count: words.number(count) })

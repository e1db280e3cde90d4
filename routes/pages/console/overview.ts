import type { FastifyInstance } from 'fastify'
import type { RowCount } from '../../../db/admin/counts.ts'
import { badge, card, facts, stat } from '../components.ts'
import { html } from '../html.ts'
import { chart } from './chart.ts'
import type { Render } from './context.ts'
import { showBytes, showDuration, showNumber } from './shown.ts'

// One a night, and some hours more.
const OLD_BACKUP_SECONDS = 36 * 3600

/** Returns the page with the state of the service. */
export function createOverview (
  { usherAdmin: admin, usherAccess: { policy }, usherOptions: { without } }: FastifyInstance
): Render {
  return async ({ caller, path }) => {
    const overview = await admin.overview(caller)
    const { version, database, users, posts, uploads, deliveries, backupAgeSeconds: backupAge, days } = overview
    const { waiting, retrying, failed } = deliveries
    const names = days.map(({ day }) => day)
    const today = days.at(-1)!
    return {
      section: 'overview',
      title: 'Overview',
      content: html`
<div class="stats">
${stat('Users', html`<a href="${path}/users">${showCount(users)}</a>`, `${showNumber(today.signUps)} new today`)}
${stat('Logins today', showNumber(today.logins), `${showNumber(today.failedLogins)} failed`)}
${!without.includes('posts') && stat('Posts', html`<a href="${path}/posts">${showCount(posts)}</a>`)}
${!without.includes('uploads') && stat('Files', html`<a href="${path}/uploads">${showCount(uploads)}</a>`,
  uploads.bytes === null ? 'size not measured yet' : showBytes(uploads.bytes))}
${stat('Failed deliveries', html`<a href="${path}/deliveries">${showNumber(failed)}</a>`,
  failed === 0 ? badge('none', 'success') : badge('look at them', 'error'))}
</div>
${card(html`${chart({
  id: 'logins',
  title: 'Logins',
  days: names,
  series: [
    { name: 'logins', kind: 'first', values: days.map(({ logins }) => logins) },
    { name: 'failed', kind: 'second', values: days.map(({ failedLogins }) => failedLogins) },
  ],
})}${chart({
  id: 'sign-ups',
  title: 'New users',
  days: names,
  series: [{ name: 'new users', kind: 'first', values: days.map(({ signUps }) => signUps) }],
})}`, { id: 'activity', title: 'The last 30 days' })}
${card(facts([
  ['Database', html`PostgreSQL ${database.version}, answers in ${database.roundTripMs} ms ${badge('up', 'success')}`],
  ['Notifications', database.notifications ? badge('arriving', 'success') : badge('do not arrive', 'error')],
  ['Processes', `${database.processes} of Usher ${database.processes === 1 ? 'listens' : 'listen'} to the database`],
  ['Waiting', waiting === 0
    ? 'no event and no mail'
    : html`${showNumber(waiting)} events and mails, ${showNumber(retrying)} of them have failed before ${
      retrying > 0 && badge('retrying', 'warning')}`],
  ['Last backup', backupAge === null
    ? html`none is known ${badge('run "backup" every night', 'warning')}`
    : html`${showDuration(backupAge)} ago ${backupAge > OLD_BACKUP_SECONDS && badge('old', 'warning')}`],
  ...policy.isOpen('users:read-email')
    ? [['Addresses', 'Anybody can read those of users. EMAILS_VISIBLE_TO=owners, or the rule users:read-email, hides them'] as const]
    : [],
  ['Version', `Usher ${version}, Node.js ${process.versions.node}`],
]), { id: 'health', title: 'Health' })}`,
    }
  }
}

const showCount = ({ count, isExact }: RowCount): string => `${isExact ? '' : 'about '}${showNumber(count)}`

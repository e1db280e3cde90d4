import {
  actions, alert, badge, button, buttonLink, card, checkbox, dialog, emptyState, facts, field, list, listRow, page,
  pageTitle, pagination, stat, table, tabs, time, toasts,
} from './components.ts'
import { html, type Html } from './html.ts'

const people = [
  { name: 'Ada Lovelace', email: 'ada@example.com', role: 'admin', posts: 1284 },
  { name: 'Grace Hopper', email: 'grace.with.a.rather.long.address@example.com', role: 'user', posts: 7 },
  { name: '<script>alert(1)</script>', email: 'mallory@example.com', role: 'user', posts: 0 },
]

const colors = [
  'canvas', 'surface', 'sunken', 'text', 'muted', 'line', 'border', 'color', 'danger', 'success', 'warning', 'info',
]

/** Returns the page of all components, for development. `assets` is the folder of design.css and ui.js. */
export function renderDesignPage ({ assets, icon }: { assets: string, icon: string }): Html {
  return page({
    language: 'en',
    direction: 'ltr',
    title: 'Design',
    productName: 'Usher',
    icon,
    stylesheets: [`${assets}design.css`],
    scripts: [`${assets}ui.js`],
    skip: 'Skip to the content',
    home: '#main',
    header: html`<span class="muted">Design system</span><span class="end">${buttonLink('#main', 'Log out', { kind: 'plain', small: true })}</span>`,
    footer: html`<a href="#terms">Terms</a><a href="#privacy">Privacy</a>`,
    width: 'wide',
    content: html`${pageTitle('Components', {
      crumbs: [{ href: '#main', text: 'Console' }],
      crumbsLabel: 'Where you are',
      actions: [button('Invite', { kind: 'plain' }), button('Create a user')],
    })}
<div class="split">
${tabs('Sections', [
  { href: '#forms', text: 'Forms', isCurrent: true }, { href: '#lists', text: 'Lists' },
  { href: '#messages', text: 'Messages' }, { href: '#tokens', text: 'Tokens' },
], { side: true })}
<div>
<div class="grid">${stat('Users', '1,204,881', '+312 this week')}${stat('Logins today', '18,022')}${
  stat('Failures', '0', badge('healthy', 'success'))}</div>
${card(html`<form>${field({
  name: 'name', label: 'Name', value: 'Ada Lovelace', required: true, attributes: { autocomplete: 'off' },
})}${field({
  name: 'email',
label: 'E-mail address',
type: 'email',
value: 'ada@',
error: 'This is not an e-mail address.',
  attributes: { autocomplete: 'off' },
})}${field({
  name: 'password',
label: 'Password',
type: 'password',
hint: '8 to 256 characters. Common passwords are rejected.',
  attributes: { autocomplete: 'new-password' },
})}${field({
  name: 'role',
label: 'Role',
value: 'user',
options: [{ value: 'user', text: 'User' }, { value: 'admin', text: 'Admin' }],
  attributes: { autocomplete: 'off' },
})}${field({ name: 'about', label: 'About', type: 'textarea', value: 'Wrote the first program.' })}${
  checkbox('Show password', { name: 'show' })}
${actions(button('Save'), button('Saving', { busy: true }), button('Cancel', { kind: 'plain', type: 'button' }),
  button('Delete', { kind: 'danger', type: 'button' }), button('Unavailable', { type: 'button', attributes: { disabled: true } }))}
</form>`, { id: 'forms', title: 'Form', hint: 'A field names its error below it.' })}
${card(html`${list([
  listRow({
    title: 'Chrome on Linux',
badges: badge('this device', 'success'),
hint: 'Munich · active now',
    actions: button('Log out', { kind: 'plain', small: true, type: 'button' }),
  }),
  listRow({
    title: 'Safari on iPhone',
hint: html`192.0.2.7 · last used ${time('2026-11-20T09:30:00Z', 'en')}`,
    actions: button('End session', { kind: 'plain', small: true, type: 'button' }),
  }),
])}
${table({
  caption: 'Users',
  columns: [
    { title: 'Name', cell: ({ name }) => html`<a href="#lists">${name}</a>`, isHeader: true },
    { title: 'E-mail address', cell: ({ email }) => email },
    { title: 'Role', cell: ({ role }) => badge(role, role === 'admin' ? 'info' : undefined) },
    { title: 'Posts', cell: ({ posts }) => posts.toLocaleString('en'), isNumber: true },
  ],
  rows: people,
})}
${pagination({ label: 'Pages', first: { href: '#lists', text: 'First page' }, next: { href: '#lists', text: 'Next page' } })}
${facts([['Created', time('2026-11-01T12:00:00Z', 'en')], ['Address', html`<code>192.0.2.7</code>`], ['Note', 'none']])}
${emptyState({
  title: 'No API keys yet',
text: 'With an API key, a program acts in your name.',
  actions: button('Create an API key', { type: 'button' }),
})}`, { id: 'lists', title: 'Lists' })}
${card(html`${alert('An e-mail is on its way to ada@example.com.')}
${alert('Your changes are saved.', 'success')}
${alert('Your session ends in five minutes.', 'warning')}
${alert('Somebody else has changed this user. Look at the changes before you save yours.', 'error')}
<p>${badge('draft')} ${badge('active', 'success')} ${badge('due', 'warning')} ${badge('failed', 'error')} ${badge('new', 'info')}</p>
${actions(button('Open a dialog', { kind: 'plain', type: 'button', attributes: { 'data-opens': 'question' } }))}`, {
  id: 'messages', title: 'Messages',
})}
${card(html`<p>Deleting cannot be undone.</p>${button('Delete the account', { kind: 'danger', type: 'button' })}`, {
  id: 'danger', title: 'Danger', danger: true,
})}
${card(html`<ul class="grid">${colors.map((name) =>
  html`<li class="row"><svg width="24" height="24" aria-hidden="true"><rect width="24" height="24" rx="6" fill="var(--${name})" stroke="var(--border)"/></svg><code>--${name}</code></li>`)}</ul>
<h1>Heading 1</h1><h2>Heading 2</h2><h3>Heading 3</h3>
<p>Text with <a href="#tokens">a link</a> and <code>code</code>.</p><p class="hint">A hint.</p>`, { id: 'tokens', title: 'Tokens' })}
</div>
</div>
${dialog(html`<p>The user is logged out everywhere, and their files are deleted.</p>${actions(
  button('Delete', { kind: 'danger', type: 'button', attributes: { 'data-closes': true } }),
  button('Cancel', { kind: 'plain', type: 'button', attributes: { 'data-closes': true } })
)}`, { id: 'question', title: 'Delete this user?' })}
${toasts(['The user is created.'])}`,
  })
}

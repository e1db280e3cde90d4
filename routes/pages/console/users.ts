import type { FastifyInstance } from 'fastify'
import type { UserRow } from '../../../db/tables/index.ts'
import { authorizeCreation } from '../../../plugins/accounts/permissions.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { ListUsers } from '../../../schema/users/user-list.ts'
import { button, buttonLink, card, checkbox, emptyState, field, table } from '../components.ts'
import { html } from '../html.ts'
import { ROWS_PER_PAGE, type Context, type Form, type Render } from './context.ts'
import { showPages, showState, showText, showTime } from './shown.ts'
import { changesOf, membersOf, showFields } from './user-form.ts'

const parseQuery = createParser(ListUsers)

const filters = {
  disabled: { disabled: true },
  unverified: { emailVerified: false },
  'no-second-factor': { secondFactor: false },
  'second-factor': { secondFactor: true },
} as const

const isFilter = (name: string | undefined): name is keyof typeof filters =>
  name !== undefined && Object.hasOwn(filters, name)

const choice = (...options: [value: string, text: string][]) => options.map(([value, text]) => ({ value, text }))

/** Returns the list of users, which can be searched, filtered and sorted. */
export function createUserList (app: FastifyInstance): Render {
  const { usherUsers: users } = app
  return async (context) => {
    const { caller, path, query } = context
    const { q = '', role, kind, status, sort = '', after } = query
    const isFiltered = isFilter(status) || Boolean(kind)
    const { page, next } = await users.list(caller, parseQuery({
      ...q.trim() !== '' && { q },
      ...role && { role },
      ...kind && { kind },
      ...isFilter(status) && filters[status],
      // Only lists by time have these filters.
      ...sort && !isFiltered && { sort },
      ...after !== undefined && { after },
      limit: ROWS_PER_PAGE,
    }))
    const rows = page.rows.map((user) => caller.viewOf(user.id).show(user) as Partial<UserRow> & { id: string })
    const content = html`
<form class="filters" method="get" role="search" aria-label="Users">
${field({
  name: 'q',
  label: 'Name or address',
  type: 'search',
  value: q,
  attributes: { placeholder: 'begins with …', minlength: 2 },
})}
${field({ name: 'role', label: 'Role', value: role ?? '', options: choice(['', 'any'], ['admin', 'admin'], ['user', 'user']) })}
${field({ name: 'kind', label: 'Kind', value: kind ?? '', options: choice(['', 'any'], ['person', 'person'], ['service', 'service']) })}
${field({
  name: 'status',
  label: 'State',
  value: status ?? '',
  options: choice(['', 'any'], ['disabled', 'disabled'], ['unverified', 'address not verified'],
    ['no-second-factor', 'no authenticator app'], ['second-factor', 'authenticator app']),
})}
${field({
  name: 'sort',
  label: 'Order',
  value: sort,
  options: choice(['', 'newest first'], ['createdAt', 'oldest first'], ['name', 'name'], ['email', 'address']),
})}
<div class="actions">${button('Search', { kind: 'plain' })}<a href="${path}/users">Reset</a></div>
</form>
${isFiltered && sort !== '' && sort !== 'createdAt' && html`<p class="hint">With these filters, the newest come first.</p>`}
${rows.length === 0
  ? emptyState({
    title: next === null ? 'No user is like this' : 'None on this page',
    text: next === null ? 'A search finds the beginnings of words of names and addresses.' : 'Later pages may have some.',
  })
  : table({
    caption: 'Users',
    hidesCaption: true,
    columns: [
      { title: 'Name', cell: ({ id, name }) => html`<a href="${path}/users/${id}">${showText(name!)}</a>`, isHeader: true },
      { title: 'Address', cell: ({ email }) => email === undefined ? '–' : showText(email) },
      { title: 'State', cell: showState },
      { title: 'Created', cell: ({ createdAt }) => showTime(createdAt!) },
    ],
    rows,
  })}
${showPages(context, '/users', next)}`
    return {
      section: 'users',
      title: 'Users',
      actions: caller.allows('users:create') && buttonLink(`${path}/users/new`, 'Create a user'),
      content,
    }
  }
}

/** Returns the page with which a user is created, and what its form does. */
export function createNewUser (app: FastifyInstance) {
  const {
    usherAccounts: { newUsers }, usherMailLinks: { passwordLinks }, usherOptions: { userFields, mailer },
  } = app
  const members = membersOf(userFields)

  const render: Render = async ({ caller, path }, { typed = {}, error } = {}) => {
    authorizeCreation(caller)
    return {
      section: 'users',
      title: 'Create a user',
      crumbs: [{ href: `${path}/users`, text: 'Users' }],
      content: card(html`<form method="post" action="${path}/users">
${showFields(members, { role: 'user', ...typed }, error)}
${field({
  name: 'kind',
  label: 'Kind',
  value: typed['kind'] ?? 'person',
  hint: 'A service is a program. It has no password, and acts with API keys.',
  options: choice(['person', 'person'], ['service', 'service']),
})}
${mailer && checkbox('Send an invitation by mail, to set a password', {
  name: 'invite', value: 'yes', checked: typed['name'] === undefined || typed['invite'] === 'yes',
})}
<div class="actions">${button('Create')}<a href="${path}/users">Cancel</a></div>
</form>`),
    }
  }

  /** Creates the user. Returns the address of its page. */
  async function create ({ caller, path }: Context, typed: Form): Promise<string> {
    const given = { ...changesOf(members, typed), ...typed['kind'] && { kind: typed['kind'] } }
    const { id, kind } = await newUsers.readAndCreate(caller, given)
    if (typed['invite'] !== 'yes' || kind === 'service') return `${path}/users/${id}?done=created`
    // The user exists in any case.
    const isInvited = await passwordLinks.invite(caller, id).then(() => true, () => false)
    return `${path}/users/${id}?done=${isInvited ? 'invited' : 'not-invited'}`
  }

  return { render, create }
}

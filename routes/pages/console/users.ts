import type { FastifyInstance } from 'fastify'
import type { UserRow } from '../../../db/tables/index.ts'
import { authorizeCreation } from '../../../plugins/accounts/permissions.ts'
import { readIfMatch } from '../../../schema/http/entity-tag.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { ListUsers } from '../../../schema/users/user-list.ts'
import { namesOfRoles } from '../../../schema/options/roles.ts'
import type { UserExtension } from '../../../schema/users/extend-user.ts'
import { labelOf } from '../../../schema/fields/fields.ts'
import type { UserFields } from '../../../schema/users/user-fields.ts'
import { button, buttonLink, card, checkbox, emptyState, field, table } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'
import { pickable, pickColumn, type Bulk } from './bulk.ts'
import { addressOf, ROWS_PER_PAGE, type Context, type Form, type Render } from './context.ts'
import { pills } from './layout.ts'
import { menuColumn, menuLink, rowMenu } from './questions.ts'
import { cards, choice, inWords, readNames, searchForm, showAvatar, showPages, showState, showText, textOfRole } from './shown.ts'
import { changesOf, membersOf, showFields } from './user-form.ts'
import type { ConsoleText, Words } from './words.ts'

const parseQuery = createParser(ListUsers)

const filters = {
  disabled: { disabled: true },
  unverified: { emailVerified: false },
  'no-second-factor': { secondFactor: false },
  'second-factor': { secondFactor: true },
} as const

const isFilter = (name: string | undefined): name is keyof typeof filters =>
  name !== undefined && Object.hasOwn(filters, name)

// Lists that are looked at often. As all others, they are addresses, which a browser can keep. A status needs
// the action `users:filter`.
const views: readonly (readonly [text: ConsoleText, query: Readonly<Record<string, string>>])[] = [
  ['viewAll', {}],
  ['viewAdmins', { role: 'admin' }],
  ['viewUnverified', { status: 'unverified', kind: 'person' }],
  ['viewDisabled', { status: 'disabled' }],
  ['viewServices', { kind: 'service' }],
]

const FILTERS = ['role', 'kind', 'status'] as const
const COLUMN = 'column.'
// Of fields of the host, unless the address names others.
const COLUMNS = 3
const LONGEST_VALUE = 60

type Shown = Partial<UserRow> & Pick<UserRow, 'id' | 'name' | 'rowVersion'>

/** Returns what can be done with several users. */
export function usersBulk (app: FastifyInstance): Bulk {
  const { usherUsers: users, usherAccounts: accounts, usherAudit: audit, usherAccess: { userSessions } } = app

  const requireAnother = ({ actor, words: { t } }: Context, id: string): void => {
    if (actor.id === id) throw new InvalidInput(t.bulkOwn)
  }
  const disable = (disabled: boolean): Bulk['actions'][string]['run'] => async (context, id, version) => {
    requireAnother(context, id)
    await accounts.readAndUpdate(context.caller, id, { disabled }, readIfMatch(version, 'version'))
  }
  return {
    section: 'users',
    address: '/users',
    title: 'ofUsers',
    actions: {
      disable: { text: 'bulkDisable', ask: 'askDisable', hint: 'hintDisable', isDanger: true, needs: 'users:disable', run: disable(true) },
      enable: { text: 'bulkEnable', ask: 'askEnable', hint: 'hintEnable', needs: 'users:disable', run: disable(false) },
      'end-sessions': {
        text: 'bulkEndSessions',
        ask: 'askEndSessions',
        hint: 'hintEndSessions',
        needs: 'sessions:end',
        async run (context, id) {
          requireAnother(context, id)
          await userSessions.endAll(context.caller, id)
        },
      },
    },
    files: {
      export: {
        text: 'bulkExport',
        needs: 'users:export',
        // One read, and one write of the account log, for all of them.
        async read ({ caller }, ids) {
          const records = await Promise.all(ids.map(async (id) => {
            if (!caller.allows('users:export', { ownerId: id })) return { id, error: 'FORBIDDEN' }
            const user = await users.get(caller, id).catch((error: Error & { code?: string, statusCode?: number }) => {
              if (![403, 404].includes(error.statusCode!)) throw error
              return { id, error: error.code! }
            })
            if ('error' in user) return user
            await audit.add(caller, { action: 'user.export', userId: id })
            const { rowVersion: _, ...shown } = caller.viewOf(user.id).show(user) as Shown
            return shown
          }))
          return { file: 'users.json', json: records }
        },
      },
    },
    namesOf: (context, ids) => readNames(context, users.records, ids),
  }
}

/** Returns the list of users, which can be searched, filtered and sorted. */
export function createUserList (app: FastifyInstance): Render {
  const { usherUsers: users, usherAudit: audit, usherOptions: options, usherOptions: { userFields } } = app
  const bulk = usersBulk(app)

  return async (context) => {
    const { caller, path, query, words, words: { t } } = context
    const { q = '', role, kind, status, sort = '', after } = query
    const isFiltered = isFilter(status) || Boolean(kind)
    const given = parseQuery({
      ...q.trim() !== '' && { q },
      ...role && { role },
      ...kind && { kind },
      ...isFilter(status) && filters[status],
      // Only lists by time have these filters.
      ...sort && !isFiltered && { sort },
      ...after !== undefined && { after },
      limit: ROWS_PER_PAGE,
    })
    const [{ page, next }, count] = await Promise.all([
      users.list(caller, given), q.trim() === '' ? users.count(caller, given) : undefined,
    ])
    const rows = page.rows.map((user) => caller.viewOf(user.id).show(user) as Shown)
    const versions = new Map(page.rows.map((user) => [user.id, caller.viewOf(user.id).tagOf(user)]))
    const logins = await audit.lastLogins(caller, rows.map(({ id }) => id))
    // What nobody of the page has is no column.
    const columns = columnsOf(userFields, query)
      .filter(({ name }) => rows.some((row) => ![null, undefined, ''].includes(Reflect.get(row, name))))
    const total = count ?? (after === undefined && next === null ? { count: rows.length, isExact: true } : undefined)
    const results = html`<div id="results"><p class="total muted" role="status">${total && totalOf(context, total)}</p>
${isFiltered && sort !== '' && sort !== 'createdAt' && html`<p class="hint">${t.orderHint}</p>`}
${rows.length === 0
  ? emptyState({
    title: next === null ? t.noUsers : t.noUsersHere, text: next === null ? t.noUsersHint : t.laterPages,
  })
  : pickable(context, bulk, table<Shown>({
    caption: t.ofUsers,
    hidesCaption: true,
    columns: [
      pickColumn(context, ({ id, name }) => ({ id, name, version: versions.get(id)! })),
      {
        title: t.userColumn,
        kind: 'who',
        isHeader: true,
        cell: (user) => html`<a href="${path}/users/${user.id}">${showAvatar(user.name)}<span class="main"><span class="badges"><span class="strong">${
          showText(user.name)}</span>${showState(words, user)}</span>${user.email !== undefined && html`<span class="muted">${showText(user.email)}</span>`}</span></a>`,
      },
      ...columns.map((column) => ({
        title: labelOf(column),
        isNumber: column.type === 'integer' || column.type === 'number',
        cell: (user: Shown) => showValue(words, column, Reflect.get(user, column.name)),
      })),
      ...logins.size > 0 ? [{ title: t.lastLogin, cell: ({ id }: Shown) => words.ago(logins.get(id)) }] : [],
      { title: t.createdColumn, cell: ({ createdAt }) => words.date(createdAt) },
      menuColumn(context, (user) => showMenu(context, user)),
    ],
    rows,
  }))}
${isAlone(context, rows, next) && emptyState({
  title: t.aloneTitle,
  text: options.signUp ? t.aloneSignUp : t.aloneHint,
  actions: caller.allows('users:create') && buttonLink(`${path}/users/new`, t.userNew, { kind: 'plain', small: true }),
})}
${showPages(context, '/users', { next, count: rows.length, total: total && totalOf(context, total) })}</div>`
    return {
      section: 'users',
      title: t.ofUsers,
      actions: caller.allows('users:create') && buttonLink(`${path}/users/new`, t.userNew, { small: true }),
      content: html`${pills(t.viewsLabel, views.filter(([, { status }]) => !status || caller.allows('users:filter')).map(([text, filter]) => ({
        href: addressOf(`${path}/users`, { ...filter, sort }),
        text: t[text],
        isCurrent: FILTERS.every((name) => (query[name] ?? '') === (filter[name] ?? '')),
      })))}
${showSearch(context, options)}
${results}`,
    }
  }

  function showMenu (context: Context, { id, name, disabled }: Shown): Html | false {
    const { actor, caller, path, words: { t } } = context
    const base = `${path}/users/${id}`
    const isOther = actor.id !== id
    const mayDisable = isOther && caller.allows('users:disable', { ownerId: id })
    return rowMenu(context, { id, name }, [
      menuLink(base, t.profileTitle),
      caller.allows('audit:read', { ownerId: id }) && menuLink(`${base}/log`, t.ofAudit),
      // Whoever does not see whether the user is disabled may do both.
      mayDisable && disabled !== false && menuLink(`${base}/enable`, t.bulkEnable, { isQuestion: true }),
      mayDisable && disabled !== true && menuLink(`${base}/disable`, t.bulkDisable, { isQuestion: true }),
      isOther && caller.allows('users:delete', { ownerId: id }) && menuLink(`${base}/delete`, t.bulkDelete, { isDanger: true }),
    ])
  }

  function totalOf ({ words, query }: Context, { count, isExact }: { count: number, isExact: boolean }): string {
    const text = words.format('usersTotal', { count })
    if (isExact) return text
    return words.format(FILTERS.some((name) => query[name]) ? 'moreThan' : 'about', { count: text })
  }
}

// Whether a list without filters has nobody but its reader.
const isAlone = ({ actor, query: { q = '', after, ...query } }: Context, rows: readonly Shown[], next: string | null): boolean =>
  rows.length === 1 && rows[0]!.id === actor.id && next === null && after === undefined && q.trim() === '' &&
  FILTERS.every((name) => !query[name])

function showSearch (context: Context, { userFields: fields, roles }: UserExtension): Html {
  const { caller, query, words: { t } } = context
  const { q = '', role = '', kind = '', status = '', sort = '' } = query
  const shown = columnsOf(fields, query)
  return searchForm(context, '/users', {
    label: t.ofUsers,
    search: { label: t.searchUsers, value: q, placeholder: t.beginsWith, minlength: 2 },
    isFiltered: [role, kind, status, sort].some((value) => value !== ''),
    filters: html`
${field({
 name: 'role',
label: t.role,
value: role,
options: choice(
  ['', t.anyValue], ...namesOfRoles(roles).map((name): [string, string] => [name, textOfRole(t, name)])
)
})}
${field({ name: 'kind', label: t.kind, value: kind, options: choice(['', t.anyValue], ['person', t.kindPerson], ['service', t.kindService]) })}
${caller.allows('users:filter') && field({
  name: 'status',
  label: t.state,
  value: status,
  options: choice(['', t.anyValue], ['disabled', t.stateDisabled], ['unverified', t.stateUnverified],
    ['no-second-factor', t.stateNoApp], ['second-factor', t.stateApp]),
})}
${field({
  name: 'sort',
  label: t.order,
  value: sort,
  options: choice(['', t.orderNewest], ['createdAt', t.orderOldest], ['name', t.orderName], ['email', t.orderEmail]),
})}
${fields.length > 0 && html`<fieldset class="columns"><legend>${t.columns}</legend><input type="hidden" name="columns" value="chosen">${
  fields.map((one) => checkbox(labelOf(one), {
    name: `${COLUMN}${one.name}`, value: 'yes', checked: shown.includes(one), autocomplete: 'off',
  }))}</fieldset>`}`,
  })
}

// Returns the fields of the host that are columns: those that the address names, otherwise the first short ones.
function columnsOf (fields: UserFields, query: Context['query']): UserFields {
  return query['columns'] === 'chosen'
    ? fields.filter(({ name }) => query[`${COLUMN}${name}`] === 'yes')
    : fields.filter(({ type }) => type !== 'json').slice(0, COLUMNS)
}

function showValue ({ t }: Words, { input }: UserFields[number], value: unknown): HtmlValue {
  if (typeof value === 'boolean') return value ? t.yes : t.no
  if (value === null || value === undefined || value === '') return html`<span class="muted none">–</span>`
  const text = typeof value === 'object' ? JSON.stringify(value) : input['enum'] ? inWords(String(value)) : String(value)
  return showText(text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text)
}

/** Returns the page with which a user is created, and what its form does. */
export function createNewUser (app: FastifyInstance) {
  const {
    usherAccounts: { newUsers }, usherMailLinks: { passwordLinks }, usherOptions: options, usherOptions: { mailer },
  } = app
  const all = membersOf(options)

  const render: Render = async ({ caller, path, words, words: { t } }, { typed = {}, error } = {}) => {
    authorizeCreation(caller)
    const members = caller.allows('users:grant-role') ? all : all.filter(({ type }) => type !== 'role')
    return {
      section: 'users',
      title: t.userNew,
      crumbs: [{ href: `${path}/users`, text: t.ofUsers }],
      content: card(html`<form class="narrow" method="post" action="${path}/users">
${cards({
  name: 'kind',
  label: t.kind,
  value: typed['kind'] === 'service' ? 'service' : 'person',
  options: [
    { value: 'person', text: t.kindPersonTitle, hint: t.kindPersonHint },
    { value: 'service', text: t.kindServiceTitle, hint: t.kindHint },
  ],
})}
${showFields(words, members, { role: 'user', ...typed }, error)}
${mailer && caller.allows('users:invite') && html`<div class="for-person">${checkbox(t.sendInvitation, {
  name: 'invite', value: 'yes', checked: typed['name'] === undefined || typed['invite'] === 'yes', autocomplete: 'off',
})}</div>`}
<div class="actions">${button(t.userNew)}${buttonLink(`${path}/users`, t.cancelButton, { kind: 'plain' })}</div>
</form>`),
    }
  }

  /** Creates the user. Returns the address of its page. */
  async function create ({ caller, path, words }: Context, typed: Form): Promise<string> {
    const given = { ...changesOf(words, all, typed), ...typed['kind'] && { kind: typed['kind'] } }
    const { id, kind } = await newUsers.readAndCreate(caller, given)
    if (typed['invite'] !== 'yes' || kind === 'service') return `${path}/users/${id}?done=created`
    // The user exists in any case.
    const isInvited = await passwordLinks.invite(caller, id).then(() => true, () => false)
    return `${path}/users/${id}?done=${isInvited ? 'invited' : 'not-invited'}`
  }

  return { render, create }
}

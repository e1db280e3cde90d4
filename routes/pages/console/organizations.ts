import type { FastifyInstance } from 'fastify'
import type { InvitationRow } from '../../../db/organizations/invitations.ts'
import type { OrganizationRow, Standing } from '../../../db/organizations/organizations.ts'
import type { ShownMember } from '../../../plugins/organizations/organizations.ts'
import { isAdmin } from '../../../plugins/organizations/views.ts'
import { decodeCursor, encodeCursor } from '../../../schema/http/cursor.ts'
import { entityTag, readIfMatch } from '../../../schema/http/entity-tag.ts'
import { InvalidInput, PreconditionFailed } from '../../../schema/http/errors.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { OWNER, type OrganizationAction } from '../../../schema/options/organizations.ts'
import {
  AddMember, CreateInvitation, ListMembers, ListOrganizations, PatchMember,
} from '../../../schema/organizations/organizations.ts'
import { readableFields, writableFields } from '../../../schema/organizations/organization-fields.ts'
import { badge, button, card, emptyState, facts, field, list, listRow, table, tabs } from '../components.ts'
import { html, type Html } from '../html.ts'
import { ROWS_PER_PAGE, type Context, type Form, type Outcome, type Render, type Submit } from './context.ts'
import { separator } from './layout.ts'
import {
  ask, askButton, menuButton, menuColumn, menuLink, requireConfirmed, rowMenu, type Question,
} from './questions.ts'
import {
  createGuideLink, findUserId, hiddenFields, linkToUser, readNames, searchForm, showAvatar, showCopied, showPages,
  showText,
} from './shown.ts'
import { changesOf, FORMER, formerOf, showFields, toMember, valuesOf, type Member } from './user-form.ts'
import type { ConsoleText, Words } from './words.ts'

const parseList = createParser(ListOrganizations)
const parseMembers = createParser(ListMembers)
const parseMember = createParser(AddMember)
const parseRole = createParser(PatchMember)
const parseInvitation = createParser(CreateInvitation)

/** The role that is chosen in the forms for somebody new. */
const NEW_ROLE = 'member'

interface Page {
  context: Context
  outcome: Outcome
  organization: OrganizationRow
  /** The address of the organisation. */
  base: string
  /** Returns whether the visitor may do something in the organisation. */
  may (action: OrganizationAction): boolean
}

/** A part of an organisation, which is a page of its own. */
interface Tab {
  /** Its address below that of the organisation. */
  address: string
  title: ConsoleText
  needs: OrganizationAction
  show (page: Page): Html | Promise<Html>
}

// What the form had when it was sent to the browser.
const formerFields = (members: readonly Member[], values: Form): Form =>
  Object.fromEntries(members.map(({ name }) => [`${FORMER}${name}`, values[name] ?? '']))

/** Returns what a role in an organisation is called. One of the host has its name only. */
export function textOfMemberRole ({ t }: Words, role: string): string {
  if (role === OWNER) return t.orgRoleOwner
  if (role === 'admin') return t.orgRoleAdmin
  return role === 'member' ? t.orgRoleMember : role
}

/** Returns the pages of organisations, by their addresses below theirs, and what their forms do. */
export function createOrganizationPages (app: FastifyInstance) {
  const {
    usherOrganizations: { operations, invitations }, usherUsers: users,
    usherOptions: { organizations: settings, mailer },
  } = app
  const roles = [...settings!.roles.keys()]
  const guideLink = createGuideLink(app.usherOptions)

  const idOf = ({ params }: Context): string => params['id']!.toLowerCase()
  const roleOptions = (words: Words) =>
    roles.map((value) => ({ value, text: textOfMemberRole(words, value) }))

  const showList: Render = async (context) => {
    const { caller, path, query: { q = '', after }, words, words: { t } } = context
    const given = parseList({ ...q.trim() !== '' && { q }, limit: ROWS_PER_PAGE })
    const { rows, next } = await operations.list(caller, {
      ...given, after: after === undefined ? undefined : decodeCursor(after),
    })
    return {
      section: 'organizations',
      title: t.ofOrganizations,
      content: html`${searchForm(context, '/organizations', {
        label: t.ofOrganizations,
        search: { label: t.searchOrganizations, value: q, placeholder: t.beginsWith, minlength: 2 },
      })}
<div id="results">${rows.length === 0
  ? emptyState(q.trim() === ''
    ? { title: t.noOrganization, text: t.noOrganizationHint, actions: guideLink('host/organizations', t.organizationGuide) }
    : { title: t.noOrganization, text: t.noneFoundHint })
  : table<OrganizationRow>({
    caption: t.ofOrganizations,
    hidesCaption: true,
    columns: [
      {
        title: t.organizationColumn,
        kind: 'who',
        isHeader: true,
        cell: ({ id, name }) => html`<a href="${path}/organizations/${id}">${showAvatar(name)}<span class="main"><span class="strong">${
          showText(name)}</span></span></a>`,
      },
      { title: t.orgSlug, cell: ({ slug }) => html`<code>${slug}</code>` },
      { title: t.createdColumn, cell: ({ createdAt }) => words.date(createdAt) },
    ],
    rows,
  })}
${showPages(context, '/organizations', { next: next && encodeCursor(next), count: rows.length })}</div>`,
    }
  }

  const parts: readonly Tab[] = [
    {
      address: '',
      title: 'profileTitle',
      needs: 'organizations:read',
      show: (page) => html`${showProfile(page)}${page.may('organizations:delete') && showDanger(page)}`,
    },
    { address: '/members', title: 'orgMembers', needs: 'members:list', show: showMembers },
    { address: '/invitations', title: 'orgInvitations', needs: 'members:invite', show: showInvitations },
  ]

  async function readPage (context: Context, outcome: Outcome, needs: OrganizationAction): Promise<Page> {
    const { caller, path } = context
    const standing: Standing = await operations.read(caller, needs, idOf(context))
    const { organization } = standing
    const may = (action: OrganizationAction) => operations.allows(caller, action, standing)
    return { context, outcome, organization, base: `${path}/organizations/${organization.id}`, may }
  }

  const render = (part: Tab): Render => async (context, outcome = {}) => {
    const { path, words: { t } } = context
    const page = await readPage(context, outcome, part.needs)
    const { organization, base, may } = page
    return {
      section: 'organizations',
      title: organization.name,
      crumbs: [{ href: `${path}/organizations`, text: t.ofOrganizations }],
      image: showAvatar(organization.name, { large: true }),
      hint: html`<p><code class="muted">${organization.slug}</code></p>`,
      content: html`${tabs(t.organizationTabs, parts.filter(({ needs }) => may(needs)).map(({ address, title }) => ({
  href: `${base}${address}`, text: t[title], isCurrent: address === part.address,
})))}
${await part.show(page)}`,
    }
  }

  // The fields of the host that a visitor sees: those that the form has, and others.
  function fieldsFor ({ caller }: Context): { edited: readonly Member[], others: readonly Member[] } {
    const readable = readableFields(settings!.fields, isAdmin(caller))
    const edited = writableFields(readable, isAdmin(caller))
    return { edited: edited.map(toMember), others: readable.filter((one) => !edited.includes(one)).map(toMember) }
  }

  function showProfile ({ context, outcome, organization, base, may }: Page): Html {
    const { words, words: { t } } = context
    const { edited, others } = fieldsFor(context)
    const { id, name, slug, createdAt, updatedAt, rowVersion } = organization
    const { typed, error } = outcome.form === 'organization' ? outcome : {}
    // What was typed stays, beside what somebody else has saved meanwhile.
    const isConflict = error instanceof PreconditionFailed
    const version = typed && !isConflict ? typed['version'] ?? '' : entityTag(rowVersion)
    const edit = (member: 'name' | 'slug', label: string, hint?: string) => {
      const [value, now] = [typed?.[member] ?? organization[member], organization[member]]
      return field({
        name: member,
        label,
        value,
        required: true,
        ...isConflict && value !== now ? { hint: html`${t.conflictNow}: ${showText(now)}` } : hint !== undefined && { hint },
        attributes: { autocomplete: 'off', ...member === 'slug' && { spellcheck: 'false' } },
      })
    }
    const now = valuesOf([...edited, ...others], organization)
    const ofHost = edited.map((member) => isConflict && (typed?.[member.name] ?? '') !== now[member.name]
      ? { ...member, hint: `${t.conflictNow}: ${now[member.name] || '–'}` }
      : member)
    return card(html`<div class="with-facts">${may('organizations:update') && html`<form method="post" action="${base}">
${hiddenFields({ version, ...formerFields(edited, typed && !isConflict ? formerOf(edited, typed) : now) })}${
      edit('name', t.name)}${edit('slug', t.orgSlug, t.orgSlugHint)}${showFields(words, ofHost, typed ?? now, error)}
<div class="actions">${button(t.saveButton)}</div></form>`}
<div>${facts([
  [t.factId, showCopied(words, id)],
  ...may('organizations:update') ? [] : [[t.name, showText(name)], [t.orgSlug, html`<code>${slug}</code>`]] as const,
  ...(may('organizations:update') ? others : [...edited, ...others]).flatMap(({ name, label }) =>
    now[name] ? [[label, showText(now[name])]] as const : []),
  [t.createdColumn, words.time(createdAt)],
  [t.factChanged, words.time(updatedAt)],
])}</div></div>`, { id: 'profile', title: t.profileTitle })
  }

  function showDanger ({ context: { words: { t } }, base }: Page): Html {
    return card(list([listRow({
      title: t.orgDelete,
      hint: t.orgDeleteHint,
      actions: askButton(`${base}/delete`, `${t.bulkDelete} …`, { isDanger: true }),
    })]), { id: 'danger', title: t.bulkDelete, danger: true })
  }

  async function showMembers ({ context, outcome, organization: { id }, base, may }: Page): Promise<Html> {
    const { caller, query: { q = '', after }, words, words: { t } } = context
    const address = `/organizations/${id}/members`
    const asked = parseMembers({ ...q.trim() !== '' && { q }, limit: ROWS_PER_PAGE })
    const { rows, next } = await operations.listMembers(caller, id, {
      ...asked, after: after === undefined ? undefined : decodeCursor(after),
    })
    const [mayChange, mayRemove] = [may('members:update'), may('members:remove')]
    return html`${searchForm(context, address, {
      label: t.orgMembers,
      search: { label: t.orgSearchMembers, value: q, placeholder: t.beginsWith, minlength: 2 },
    })}
<div id="results">${rows.length === 0
  ? emptyState({ title: t.orgNoMember })
  : table<ShownMember>({
    caption: t.orgMembers,
    hidesCaption: true,
    columns: [
      { title: t.userColumn, kind: 'who', isHeader: true, cell: (member) => showMember(context, member) },
      { title: t.role, cell: ({ role }) => badge(textOfMemberRole(words, role), role === OWNER ? 'info' : undefined) },
      { title: t.orgMemberSince, cell: ({ createdAt }) => words.date(createdAt) },
      menuColumn(context, ({ userId: item, name }) => rowMenu(context, { id: item, name }, [
        mayChange && menuLink(`${base}/members/${item}/role`, t.orgChangeRole, { isQuestion: true }),
        mayRemove && menuLink(`${base}/members/${item}/remove`, t.passkeyRemove, { isDanger: true }),
      ])),
    ],
    rows,
  })}${showPages(context, address, { next: next && encodeCursor(next), count: rows.length })}</div>
${mayChange && html`<p class="hint">${t.orgTransferHint}</p>`}
${caller.allows('members:invite', undefined, null) && showNewMember(context, outcome, base)}`
  }

  function showMember ({ path, words: { t } }: Context, { userId, name, email, disabled }: ShownMember): Html {
    return html`<a href="${path}/users/${userId}">${showAvatar(name)}<span class="main"><span class="badges"><span class="strong">${
      showText(name)}</span>${disabled && badge(t.stateDisabled, 'error')}</span>${
      email !== undefined && html`<span class="muted">${showText(email)}</span>`}</span></a>`
  }

  function showNewMember ({ words, words: { t } }: Context, { form, typed: given }: Outcome, base: string): Html {
    const typed = form === 'member' ? given : undefined
    return card(html`<form class="narrow" method="post" action="${base}/members">
${field({
  name: 'user',
  label: t.logUser,
  value: typed?.['user'],
  required: true,
  hint: t.orgAddMemberHint,
  attributes: { autocomplete: 'off', spellcheck: 'false' },
})}
${field({ name: 'role', label: t.role, value: typed?.['role'] ?? NEW_ROLE, options: roleOptions(words) })}
<div class="actions">${button(t.orgAddMember)}</div></form>`, { id: 'new-member', title: t.orgAddMember })
  }

  async function showInvitations ({ context, outcome, organization: { id }, base }: Page): Promise<Html> {
    const { caller, query: { after }, words, words: { t } } = context
    const { rows, next } = await invitations.list(caller, id, {
      limit: ROWS_PER_PAGE, after: after === undefined ? undefined : decodeCursor(after),
    })
    const names = await readNames(context, users.records, rows.map(({ invitedBy }) => invitedBy))
    const row = ({ id: item, email, role, invitedBy, createdAt, expiresAt }: InvitationRow) => listRow({
      title: showText(email),
      badges: html` ${badge(textOfMemberRole(words, role))}`,
      hint: html`${invitedBy !== null && html`${linkToUser(context, invitedBy, names)}${separator}`}${
        words.ago(createdAt)}${separator}${words.phrase('keyExpiresText', { time: words.time(expiresAt) })}`,
      actions: rowMenu(context, { id: item, name: email }, [
        menuButton(`${base}/invitations/${item}/withdraw`, t.orgWithdraw),
      ]),
    })
    return html`${rows.length === 0
      ? emptyState({ title: t.orgNoInvitation })
      : card(list(rows.map(row)), { id: 'pending', title: t.orgInvitations })}${
      showPages(context, `/organizations/${id}/invitations`, { next: next && encodeCursor(next), count: rows.length })}
${mailer && showNewInvitation(context, outcome, base)}`
  }

  function showNewInvitation ({ words, words: { t } }: Context, { form, typed: given }: Outcome, base: string): Html {
    const typed = form === 'invitation' ? given : undefined
    return card(html`<form class="narrow" method="post" action="${base}/invitations">
${field({
  name: 'email', label: t.email, type: 'email', value: typed?.['email'], required: true, attributes: { autocomplete: 'off' },
})}
${field({ name: 'role', label: t.role, value: typed?.['role'] ?? NEW_ROLE, options: roleOptions(words) })}
<div class="actions">${button(t.invite)}</div></form>`, { id: 'new-invitation', title: t.invite })
  }

  /** What is asked before a form is sent, by the address of that, and who may send it. */
  const questions: Readonly<Record<string, {
    part: Tab
    needs: OrganizationAction
    ask (page: Page, member: Pick<ShownMember, 'name' | 'role'>): Question
  }>> = {
    '/delete': {
      part: parts[0]!,
      needs: 'organizations:delete',
      ask: ({ context: { words, words: { t } }, organization: { name, slug, rowVersion } }) => ({
        title: words.format('deleteUserThis', { name }),
        text: t.orgDeleteHint,
        button: t.bulkDelete,
        isDanger: true,
        fields: { version: entityTag(rowVersion) },
        typed: slug,
      }),
    },
    '/members/:item/role': {
      part: parts[1]!,
      needs: 'members:update',
      ask: ({ context: { words, words: { t } } }, { name, role }) => ({
        title: words.format('orgRoleThis', { name }),
        text: t.orgTransferHint,
        button: t.saveButton,
        choice: field({ name: 'role', label: t.role, value: role, options: roleOptions(words) }),
      }),
    },
    '/members/:item/remove': {
      part: parts[1]!,
      needs: 'members:remove',
      ask: ({ context: { words, words: { t } } }, { name }) => ({
        title: words.format('orgRemoveMemberThis', { name }), text: t.orgRemoveMemberHint, button: t.passkeyRemove, isDanger: true,
      }),
    },
  }

  const renderQuestion = (address: string): Render | undefined => {
    if (!Object.hasOwn(questions, address)) return undefined
    const { part, needs, ask: askFor } = questions[address]!
    return async (context, outcome = {}) => {
      const { caller, path, params: { item }, words: { t } } = context
      const page = await readPage(context, outcome, needs)
      const { organization: { id, name }, base } = page
      const member = item === undefined ? { name: '', role: '' } : await operations.getMember(caller, id, item.toLowerCase())
      return ask(context, outcome, askFor(page, member), {
        action: `${base}${address.replace(':item', item ?? '')}`,
        section: 'organizations',
        crumbs: [{ href: `${path}/organizations`, text: t.ofOrganizations }, { href: `${base}${part.address}`, text: name }],
      })
    }
  }

  /** Returns the address of a part of an organisation, which says what was done. */
  const doneAt = (context: Context, address: string, done: string): string =>
    `${context.path}/organizations/${idOf(context)}${address}?done=${done}`

  /** What the forms do, by their addresses below that of the organisation, with their names. */
  const forms: readonly { address: string, part: Tab, form?: string, submit: Submit }[] = [
    {
      address: '',
      part: parts[0]!,
      form: 'organization',
      submit: async (context, typed) => {
        const { name, slug, version } = typed
        if (version === undefined) throw new InvalidInput(context.words.t.reloadFirst)
        const { caller, words } = context
        const { edited } = fieldsFor(context)
        const changes = changesOf(words, edited, typed, formerOf(edited, typed))
        const given = operations.readChanges(caller, { name, slug, ...changes })
        await operations.update(caller, idOf(context), given, readIfMatch(version, 'version'))
        return doneAt(context, '', 'saved')
      },
    },
    {
      address: '/delete',
      part: parts[0]!,
      submit: async (context, typed) => {
        const { organization: { slug } } = await readPage(context, {}, 'organizations:delete')
        requireConfirmed(context, typed, slug)
        await operations.delete(context.caller, idOf(context), readIfMatch(typed['version'] ?? '""', 'version'))
        return `${context.path}/organizations?done=organization-deleted`
      },
    },
    {
      address: '/members',
      part: parts[1]!,
      form: 'member',
      submit: async (context, { user = '', role }) => {
        const { caller, words: { t } } = context
        const userId = await findUserId(context, users, user)
        if (!(await readNames(context, users.records, [userId])).has(userId)) throw new InvalidInput(t.noUsers)
        await operations.addMember(caller, idOf(context), parseMember({ userId, role }))
        return doneAt(context, '/members', 'member-added')
      },
    },
    {
      address: '/members/:item/role',
      part: parts[1]!,
      submit: async (context, typed) => {
        const { role } = parseRole({ role: typed['role'] })
        await operations.updateMember(context.caller, idOf(context), context.params['item']!.toLowerCase(), role)
        return doneAt(context, '/members', 'saved')
      },
    },
    {
      address: '/members/:item/remove',
      part: parts[1]!,
      submit: async (context, typed) => {
        requireConfirmed(context, typed)
        await operations.removeMember(context.caller, idOf(context), context.params['item']!)
        return doneAt(context, '/members', 'member-removed')
      },
    },
    {
      address: '/invitations',
      part: parts[2]!,
      form: 'invitation',
      submit: async (context, { email, role }) => {
        await invitations.create(context.caller, idOf(context), parseInvitation({ email, role }))
        return doneAt(context, '/invitations', 'invited')
      },
    },
    {
      address: '/invitations/:item/withdraw',
      part: parts[2]!,
      submit: async (context) => {
        await invitations.withdraw(context.caller, idOf(context), context.params['item']!.toLowerCase())
        return doneAt(context, '/invitations', 'invitation-withdrawn')
      },
    },
  ]

  /** Returns the organisations of a user, with the role in each. */
  async function showOf ({ caller, path, words, words: { t } }: Context, userId: string): Promise<Html> {
    const rows = await operations.listOf(caller, userId)
    return rows.length === 0
      ? emptyState({ title: t.noOrganization })
      : card(list(rows.map(({ id, name, slug, role }): Html => listRow({
        title: html`<a href="${path}/organizations/${id}">${showText(name)}</a>`,
        badges: html` ${badge(textOfMemberRole(words, role), role === OWNER ? 'info' : undefined)}`,
        hint: html`<code>${slug}</code>`,
      }))), { id: 'organizations', title: t.ofOrganizations })
  }

  return {
    list: showList,
    showOf,
    pages: Object.fromEntries(parts.map((part) => [part.address, render(part)])),
    forms: forms.map(({ part, ...form }) => {
      const question = renderQuestion(form.address)
      return { ...form, question, render: question ?? render(part) }
    }),
  }
}

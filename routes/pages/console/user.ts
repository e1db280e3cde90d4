import type { FastifyInstance } from 'fastify'
import type { UserRow } from '../../../db/tables/index.ts'
import { readIfMatch } from '../../../schema/http/entity-tag.ts'
import { InvalidInput, PreconditionFailed } from '../../../schema/http/errors.ts'
import { ApiKeyNotFound, CreateApiKey } from '../../../schema/sign-in/api-keys.ts'
import { PasskeyNotFound } from '../../../schema/sign-in/passkeys.ts'
import { IdentityNotFound } from '../../../schema/sign-in/providers.ts'
import { createParser } from '../../../schema/http/validator.ts'
import type { Action, ReadAction } from '../../../schema/options/policy.ts'
import { alert, badge, button, card, emptyState, facts, field, list, listRow, tabs } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'
import { keyActionsOf, showKeyActions } from '../account/key-actions.ts'
import type { Context, Done, Form, Outcome, Render, Submit } from './context.ts'
import { separator } from './layout.ts'
import type { createLogPages } from './log.ts'
import type { createOrganizationPages } from './organizations.ts'
import type { createPostPages } from './posts.ts'
import {
  ask, askButton, menuButton, menuLink, requireConfirmed, rowMenu, type Question,
} from './questions.ts'
import {
  buttonForm, cards, hiddenFields, linkToOrganization, readOrganizationNames, revokeLinks, showAgent, showAvatar,
  showCopied, showMethods, showState, showText,
} from './shown.ts'
import type { createUploadPages } from './uploads.ts'
import {
  changesOf, FORMER, formerOf, membersOf, merge, showConflicts, showFields, valuesOf, type Merged,
} from './user-form.ts'
import type { ConsoleText } from './words.ts'

const SHOWN_SESSIONS = 50
const DAY_MS = 86_400_000
const KEY_DAYS: readonly string[] = ['7', '30', '90', '365']
const USUAL_KEY_DAYS = '90'
/** The prefix of the boxes of the actions of a key, of which a form has one each. */
const ACTION = 'action.'

const actionsOf = (typed: Form): string[] =>
  Object.keys(typed).filter((name) => name.startsWith(ACTION)).map((name) => name.slice(ACTION.length))

const parseKey = createParser(CreateApiKey)

/** Returns what has to be typed before a user is deleted. */
const whatToType = ({ email, name }: Page['user']): string => email ?? name

/** The lists of other sections, of which each user has a part. */
export interface OtherPages {
  log: ReturnType<typeof createLogPages>
  posts: ReturnType<typeof createPostPages> | undefined
  uploads: ReturnType<typeof createUploadPages> | undefined
  organizations: ReturnType<typeof createOrganizationPages> | undefined
}

interface Page {
  context: Context
  outcome: Outcome
  user: Partial<UserRow> & Pick<UserRow, 'id' | 'name' | 'kind'>
  version: string
  /** The address of the user. */
  base: string
}

/** A part of a user, which is a page of its own. */
interface Tab {
  /** Its address below that of the user. */
  address: string
  title: ConsoleText
  isShown (page: Page): boolean
  show (page: Page): Html | Promise<Html>
}

/** Returns the pages of a user, by their addresses below that of the user, and what their forms do. */
export function createUserPages (app: FastifyInstance, { log, posts, uploads, organizations }: OtherPages) {
  const {
    usherUsers: users, usherAccounts: accounts,
    usherAccess: { userSessions }, usherSignIn: { apiKeys, credentials, passkeys, providers },
    usherMailLinks: { verificationLinks, passwordLinks },
    usherOptions: options, usherOptions: { mailer },
  } = app
  const operations = options.organizations && app.usherOrganizations.operations
  const members = membersOf(options)
  const keyActions = keyActionsOf(options.policy)

  const idOf = ({ params }: Context): string => params['id']!.toLowerCase()
  const isPerson = ({ user }: Page): boolean => user.kind === 'person'

  const parts: readonly Tab[] = [
    { address: '', title: 'profileTitle', isShown: () => true, show: (page) => html`${showProfile(page)}${showDanger(page)}` },
    {
      address: '/sign-in',
      title: 'tabSignIn',
      isShown: (page) => isPerson(page) && page.context.caller.allows('second-factor:read', { ownerId: page.user.id }),
      show: showWays,
    },
    {
      address: '/sessions',
      title: 'sessionsTitle',
      isShown: (page) => isPerson(page) && page.context.caller.allows('sessions:list-of-another', { ownerId: page.user.id }),
      show: showSessions,
    },
    {
      address: '/keys',
      title: 'keysTitle',
      isShown: ({ context, user }) => context.caller.allows('api-keys:list', { ownerId: user.id }),
      show: showKeys,
    },
    {
      address: '/organizations',
      title: 'ofOrganizations',
      isShown: ({ context: { caller } }) => organizations !== undefined && caller.allows('organizations:read'),
      show: ({ context, user }) => organizations!.showOf(context, user.id),
    },
    {
      address: '/files',
      title: 'filesTitle',
      isShown: ({ context, user }) => uploads !== undefined && context.caller.allows('uploads:list', { ownerId: user.id }),
      show: ({ context, user }) => uploads!.showList(context, { userId: user.id, address: `/users/${user.id}/files` }),
    },
    {
      address: '/posts',
      title: 'ofPosts',
      isShown: ({ context, user }) => posts !== undefined && context.caller.allows('posts:read', { ownerId: user.id }),
      show: ({ context, user }) => posts!.showList(context, { authorId: user.id, address: `/users/${user.id}/posts` }),
    },
    {
      address: '/log',
      title: 'ofAudit',
      isShown: ({ context, user }) => context.caller.allows('audit:read', { ownerId: user.id }),
      show: ({ context, user }) => log.showList(context, { user: user.id, address: `/users/${user.id}/log` }),
    },
  ]

  async function readPage (context: Context, outcome: Outcome): Promise<Page> {
    const { caller, path } = context
    const id = idOf(context)
    const user = await users.get(caller, id)
    const view = caller.viewOf(id)
    const shown = view.show(user) as Page['user']
    return { context, outcome, user: shown, version: view.tagOf(user), base: `${path}/users/${id}` }
  }

  const render = (part: Tab): Render => async (context, outcome = {}) => {
    const { path, words, words: { t } } = context
    const page = await readPage(context, outcome)
    const { user } = page
    const content = await part.show(page)
    return {
      section: 'users',
      title: user.name,
      crumbs: [{ href: `${path}/users`, text: t.ofUsers }],
      image: showAvatar(user.name, { large: true }),
      hint: html`<p class="badges">${user.email !== undefined && html`<span class="muted">${showText(user.email)}</span>`}${showState(words, user)}</p>`,
      content: html`${tabs(t.tabsLabel, parts.filter(({ isShown }) => isShown(page)).map(({ address, title }) => ({
  href: `${page.base}${address}`, text: t[title], isCurrent: address === part.address,
})))}
${content}`,
    }
  }

  // Returns the members that the form has: what the visitor may change of this user.
  function editableMembers ({ context: { caller }, user: { id: ownerId } }: Page): typeof members {
    const mayReplace = caller.allows('users:replace', { ownerId })
    const mayGrant = caller.allows('users:grant-role') && (mayReplace || caller.isListed('users:grant-role'))
    return members.filter(({ type }) => type === 'role' ? mayGrant : mayReplace)
  }

  function showProfile (page: Page): Html {
    const { context: { caller, words, words: { t } }, outcome, user, version, base } = page
    const editable = editableMembers(page)
    const { form, typed, error } = outcome
    const isOwn = form === 'profile' && typed !== undefined
    const merged: Merged | undefined =
      isOwn && error instanceof PreconditionFailed ? merge(members, typed, user) : undefined
    const current = valuesOf(members, user)
    const former = isOwn && !merged ? formerOf(members, typed) : current
    const fields = Object.fromEntries(members.map(({ name }) => [`${FORMER}${name}`, former[name] ?? '']))
    const sent = isOwn && !merged ? typed['version'] ?? version : version
    return html`${merged && alert(html`<p class="strong">${t.conflictTitle}</p>
<p>${t.conflictHint}</p>${showConflicts(words, merged.conflicts)}`, 'warning')}
${card(html`<div class="with-facts">${editable.length > 0 && html`<form method="post" action="${base}">
${hiddenFields({ version: sent, ...fields })}
${showFields(words, editable, merged?.values ?? (isOwn ? typed : current), isOwn ? error : undefined)}
<div class="actions">${button(t.saveButton)}</div></form>`}
<div>${facts([
  [t.factId, showCopied(words, user.id)],
  [t.kind, user.kind === 'service' ? t.kindService : t.kindPerson],
  [t.createdColumn, words.time(user.createdAt)],
  [t.factChanged, words.time(user.updatedAt)],
])}${user.emailVerified === false && user.kind === 'person' && mailer &&
  caller.allows('users:verify-email', { ownerId: user.id }) && buttonForm(`${base}/verification`, t.verifyAddress)}</div></div>`,
{ id: 'profile', title: t.profileTitle })}`
  }

  async function showSessions ({ context, user, base }: Page): Promise<Html> {
    const { caller, words, words: { t } } = context
    const sessions = await userSessions.list(caller, user.id)
    const more = sessions.length - SHOWN_SESSIONS
    const mayEnd = caller.allows('sessions:end', { ownerId: user.id })
    return sessions.length === 0
      ? emptyState({ title: t.noSession })
      : card(html`${list(sessions.slice(0, SHOWN_SESSIONS).map((session) => {
        const agent = showAgent(words, session.userAgent)
        return listRow({
          title: showText(agent),
          badges: html` ${session.console && badge(t.sessionConsole, 'info')} ${session.current && badge(t.sessionThis, 'success')}`,
          hint: html`${words.phrase('sessionText', {
            address: session.address || t.unknownAddress, time: words.ago(session.lastUsedAt),
          })}${session.amr.length > 0 && html`${separator}${showMethods(words, session.amr)}`}`,
          actions: mayEnd && rowMenu(context, { id: session.id, name: agent }, [
            menuButton(`${base}/sessions/${session.id}/end`, t.endSession),
          ]),
        })
      }))}${more > 0 && html`<p class="hint">${words.format('moreSessions', { count: more })}</p>`}
${mayEnd && html`<div class="caution"><p>${t.endAllHint}</p>${
  askButton(`${base}/sessions/end`, t.endAllSessions, { isDanger: true })}</div>`}`, { id: 'sessions', title: t.sessionsTitle })
  }

  async function showWays ({ context, user, base }: Page): Promise<Html> {
    const { caller, words, words: { t } } = context
    const { password, totp, recoveryCodesLeft, passkeys, identities } = await credentials.list(caller, user.id)
    const may = (action: Action | ReadAction) => caller.allows(action, { ownerId: user.id })
    const used = (added: Date, at: Date | null, texts: readonly [ConsoleText, ConsoleText]) => at === null
      ? words.phrase(texts[1], { added: words.time(added) })
      : words.phrase(texts[0], { added: words.time(added), used: words.time(at) })
    return card(html`${list([
      listRow({
        title: t.passwordTitle,
        hint: password ? t.isSet : t.isNotSet,
        actions: mailer && !user.disabled && rowMenu(context, { id: 'password', name: t.passwordTitle }, [password
          ? may('users:read-email') && menuButton(`${base}/reset`, t.sendReset)
          : may('users:invite') && menuButton(`${base}/invitation`, t.invite)]),
      }),
      listRow({
        title: t.totpTitle,
        hint: totp
          ? html`${words.phrase('appSince', { time: words.time(totp.confirmedAt) })}${separator}${
            words.format('recoveryLeft', { count: recoveryCodesLeft })}`
          : t.appNone,
        actions: totp && may('second-factor:reset') && rowMenu(context, { id: 'totp', name: t.totpTitle }, [
          menuLink(`${base}/second-factor/reset`, t.passkeyRemove, { isDanger: true }),
        ]),
      }),
      ...passkeys.map(({ id, name, createdAt, lastUsedAt }) => listRow({
        title: html`${t.passkeysTitle}: ${showText(name)}`,
        hint: used(createdAt, lastUsedAt, ['addedUsed', 'addedUnused']),
        actions: may('passkeys:remove') && rowMenu(context, { id, name }, [
          menuLink(`${base}/passkeys/${id}/remove`, t.passkeyRemove, { isDanger: true }),
        ]),
      })),
      ...identities.map(({ id, provider, email, createdAt, lastUsedAt }) => listRow({
        title: html`${provider} ${email !== null && showText(email)}`,
        hint: used(createdAt, lastUsedAt, ['linkedUsed', 'addedUnused']),
        actions: may('identities:remove') && rowMenu(context, { id, name: provider }, [
          menuLink(`${base}/identities/${id}/remove`, t.identityRemove, { isDanger: true }),
        ]),
      })),
    ])}<p class="hint">${t.waysHint}</p>`, { id: 'ways', title: t.tabSignIn })
  }

  async function showKeys ({ context, outcome, user, base }: Page): Promise<Html> {
    const { caller, words, words: { t } } = context
    const keys = await apiKeys.list(caller, user.id)
    const names = await readOrganizationNames(context, operations, keys.map(({ organizationId }) => organizationId))
    const { typed = {}, error, form, result } = outcome
    const isOwn = form === 'key'
    return html`${isOwn && result}
${keys.length === 0
  ? emptyState({ title: t.noKey })
  : card(list(keys.map(({ id, name, actions, organizationId, createdAt, lastUsedAt, expiresAt }) => listRow({
    title: showText(name),
    badges: organizationId !== null && html`${separator}${linkToOrganization(context, organizationId, names)}`,
    hint: html`<span class="badges">${actions === null
      ? badge(t.keyAll, 'warning')
      : actions.map((action) => html`<code class="badge">${action}</code>`)}</span><br>${words.phrase('keyMade', { time: words.date(createdAt) })}${separator}${lastUsedAt === null
      ? t.keyUnused
      : words.phrase('keyUsedText', { time: words.ago(lastUsedAt) })}${
      separator}${expiresAt === null
      ? badge(`${t.keyExpires}: ${t.keyNever}`, 'warning')
      : words.phrase('keyExpiresText', { time: words.date(expiresAt) })}`,
    actions: caller.allows('api-keys:delete', { ownerId: user.id }) && rowMenu(context, { id, name }, [
      menuLink(`${base}/keys/${id}/delete`, t.keyDelete, { isDanger: true }),
    ]),
  }))), { id: 'keys', title: t.keysTitle })}
${user.kind === 'service' && caller.allows('api-keys:create', { ownerId: user.id }) &&
  showNewKey(context, base, isOwn && !result ? typed : {}, isOwn ? error?.errors?.[0] : undefined)}`
  }

  function showNewKey ({ words, words: { t } }: Context, base: string, typed: Form, failure: string | undefined): Html {
    const { keyName, permits = 'some', expires = USUAL_KEY_DAYS } = typed
    return card(html`<form method="post" action="${base}/keys">
<div class="narrow">${field({
  name: 'keyName', label: t.keyNewName, required: true, value: keyName, error: failure, attributes: { autocomplete: 'off' },
})}${field({
  name: 'expires',
  label: t.keyExpires,
  value: expires,
  options: [...KEY_DAYS.map((days) => ({ value: days, text: words.format('keyDays', { count: Number(days) }) })), { value: '', text: t.keyNever }],
})}<div class="if-never">${alert(t.keyNeverHint, 'warning', { role: 'note' })}</div></div>
${cards({
  name: 'permits',
  label: t.keyPermits,
  value: permits,
  options: [
    { value: 'some', text: t.keySome, hint: t.keySomeHint }, { value: 'all', text: t.keyAllTitle, hint: t.keyAllHint },
  ],
})}
<div class="key-actions">${showKeyActions(keyActions, t, { nameOf: (action) => `${ACTION}${action}`, chosen: actionsOf(typed) })}</div>
<div class="actions">${button(t.keyNew)}</div></form>`, { id: 'new-key', title: t.keyNew })
  }

  function showDanger ({ context: { actor, caller, words: { t } }, user, version, base }: Page): Html | false {
    const { id: ownerId } = user
    const [mayDisable, mayDelete] = [caller.allows('users:disable', { ownerId }), caller.allows('users:delete', { ownerId })]
    if (!mayDisable && !mayDelete) return false
    const content: HtmlValue = actor.id === user.id
      ? html`<p>${t.dangerOwn}</p>`
      : list([
        // Whoever does not see whether the user is disabled may do both.
        mayDisable && user.disabled !== false && listRow({
          title: t.enableUser, hint: t.enableHint, actions: buttonForm(`${base}/enable`, t.bulkEnable, { fields: { version } }),
        }),
        mayDisable && user.disabled !== true && listRow({
          title: t.disableUser, hint: t.disableHint, actions: askButton(`${base}/disable`, `${t.bulkDisable} …`),
        }),
        mayDelete && listRow({
          title: t.deleteUser,
          hint: t.deleteUserHint,
          actions: askButton(`${base}/delete`, `${t.bulkDelete} …`, { isDanger: true }),
        }),
      ].filter((row) => row !== false))
    return card(content, { id: 'danger', title: t.dangerTitle, danger: true })
  }

  /** What is asked before a form is sent, by the address of that, and who may send it. */
  const questions: Readonly<Record<string, {
    needs: Action
    ask (page: Page): Question | Promise<Question>
  }>> = {
    '/disable': {
      needs: 'users:disable',
      ask: ({ context: { words, words: { t } }, user: { name }, version }) => ({
        title: words.format('disableThis', { name }), text: t.disableHint, button: t.bulkDisable, isDanger: true, fields: { version },
      }),
    },
    '/enable': {
      needs: 'users:disable',
      ask: ({ context: { words, words: { t } }, user: { name }, version }) => ({
        title: words.format('enableThis', { name }), text: t.enableHint, button: t.bulkEnable, fields: { version },
      }),
    },
    '/delete': {
      needs: 'users:delete',
      ask: ({ context: { words, words: { t } }, user, version }) => ({
        title: words.format('deleteUserThis', { name: user.name }),
        text: t.deleteUserHint,
        button: t.bulkDelete,
        isDanger: true,
        fields: { version },
        typed: whatToType(user),
      }),
    },
    '/sessions/end': {
      needs: 'sessions:end',
      ask: ({ context: { words, words: { t } }, user: { name } }) => ({
        title: words.format('endSessionsThis', { name }), text: t.endAllHint, button: t.endAllSessions, isDanger: true,
      }),
    },
    '/passkeys/:item/remove': {
      needs: 'passkeys:remove',
      async ask ({ context: { caller, params, words, words: { t } }, user }) {
        const found = (await credentials.list(caller, user.id)).passkeys.find(({ id }) => id === params['item'])
        if (!found) throw new PasskeyNotFound()
        return { title: words.format('removeThis', { name: found.name }), text: t.waysHint, button: t.passkeyRemove, isDanger: true }
      },
    },
    '/identities/:item/remove': {
      needs: 'identities:remove',
      async ask ({ context: { caller, params, words, words: { t } }, user }) {
        const found = (await credentials.list(caller, user.id)).identities.find(({ id }) => id === params['item'])
        if (!found) throw new IdentityNotFound()
        return { title: words.format('removeThis', { name: found.provider }), text: t.waysHint, button: t.identityRemove, isDanger: true }
      },
    },
    '/second-factor/reset': {
      needs: 'second-factor:reset',
      ask: ({ context: { words, words: { t } }, user: { name } }) => ({
        title: words.format('removeAppThis', { name }), text: t.appHint, button: t.passkeyRemove, isDanger: true,
      }),
    },
    '/keys/:item/delete': {
      needs: 'api-keys:delete',
      async ask ({ context: { caller, params, words, words: { t } }, user }) {
        const found = (await apiKeys.list(caller, user.id)).find(({ id }) => id === params['item'])
        if (!found) throw new ApiKeyNotFound()
        return {
          title: words.format('deleteThis', { name: found.name }),
          text: t.keyDeleteHint,
          button: t.keyDelete,
          isDanger: true,
          option: uploads && revokeLinks(words),
        }
      },
    },
  }

  const renderQuestion = (address: string): Render | undefined => {
    if (!Object.hasOwn(questions, address)) return undefined
    const { needs, ask: askFor } = questions[address]!
    return async (context, outcome = {}) => {
      const { caller, path, params, words: { t } } = context
      caller.authorize(needs, { ownerId: idOf(context) })
      const page = await readPage(context, outcome)
      const { address: part } = partOf(address)
      return ask(context, outcome, await askFor(page), {
        action: `${page.base}${address.replace(':item', params['item'] ?? '')}`,
        section: 'users',
        crumbs: [{ href: `${path}/users`, text: t.ofUsers }, { href: `${page.base}${part}`, text: page.user.name }],
      })
    }
  }

  /** Returns the address of a part of a user, which says what was done. */
  const doneAt = (context: Context, address: string, done: string): string =>
    `${context.path}/users/${idOf(context)}${address}?done=${done}`

  async function update (context: Context, given: Record<string, unknown>, version: string | undefined): Promise<void> {
    const { caller, words: { t } } = context
    const id = idOf(context)
    if (version === undefined) throw new InvalidInput(t.reloadFirst)
    await accounts.readAndUpdate(caller, id, given, readIfMatch(version, 'version'))
  }

  /** What the forms do, by their addresses below that of the user. */
  const forms: Readonly<Record<string, Submit>> = {
    '': async (context, typed) => {
      await update(context, changesOf(context.words, members, typed, formerOf(members, typed)), typed['version'])
      return doneAt(context, '', 'saved')
    },
    '/disable': async (context, typed) => {
      requireConfirmed(context, typed)
      await update(context, { disabled: true }, typed['version'])
      return doneAt(context, '', 'disabled')
    },
    '/enable': async (context, typed) => {
      await update(context, { disabled: false }, typed['version'])
      return doneAt(context, '', 'enabled')
    },
    '/delete': async (context, typed) => {
      context.caller.authorize('users:delete', { ownerId: idOf(context) })
      const { user } = await readPage(context, {})
      requireConfirmed(context, typed, whatToType(user))
      await accounts.delete(context.caller, idOf(context), readIfMatch(typed['version'] ?? '""', 'version'))
      return `${context.path}/users?done=deleted`
    },
    '/sessions/end': async (context) => {
      await userSessions.endAll(context.caller, idOf(context))
      return doneAt(context, '/sessions', 'sessions-ended')
    },
    '/sessions/:item/end': async (context) => {
      await userSessions.end(context.caller, context.params['item']!, idOf(context))
      return doneAt(context, '/sessions', 'session-ended')
    },
    '/passkeys/:item/remove': async (context) => {
      await passkeys.remove(context.caller, idOf(context), context.params['item']!)
      return doneAt(context, '/sign-in', 'passkey-removed')
    },
    '/identities/:item/remove': async (context) => {
      await providers.removeIdentity(context.caller, idOf(context), context.params['item']!)
      return doneAt(context, '/sign-in', 'identity-removed')
    },
    '/second-factor/reset': async (context, typed) => {
      requireConfirmed(context, typed)
      await credentials.resetSecondFactor(context.caller, idOf(context))
      return doneAt(context, '/sign-in', 'factor-removed')
    },
    '/invitation': async (context) => {
      await passwordLinks.invite(context.caller, idOf(context))
      return doneAt(context, '/sign-in', 'invited')
    },
    '/verification': async (context) => {
      await verificationLinks.send(context.caller, idOf(context))
      return doneAt(context, '', 'verification-sent')
    },
    '/reset': async (context) => {
      const { caller } = context
      const id = idOf(context)
      caller.authorize('users:read-email', { ownerId: id })
      const { email } = await users.get(caller, id)
      await passwordLinks.request(caller, email)
      return doneAt(context, '/sign-in', 'reset-sent')
    },
    '/keys/:item/delete': async (context, { revokeLinks }) => {
      const given = { revokesLinks: revokeLinks === 'yes' }
      await apiKeys.delete(context.caller, idOf(context), context.params['item']!, given)
      return doneAt(context, '/keys', 'key-deleted')
    },
    '/keys': async (context, typed): Promise<Done> => {
      const { caller, words, words: { t } } = context
      caller.authorize('api-keys:create', { ownerId: idOf(context) })
      const { keyName: name = '', permits, expires = USUAL_KEY_DAYS } = typed
      const actions = actionsOf(typed)
      if (permits !== 'all' && actions.length === 0) throw new InvalidInput(t.keyChooseActions)
      const given = parseKey({
        name,
        ...permits !== 'all' && { actions },
        ...KEY_DAYS.includes(expires) && { expiresAt: new Date(Date.now() + Number(expires) * DAY_MS).toISOString() },
      })
      const { key } = await apiKeys.create(caller, idOf(context), given)
      return { result: alert(html`<p class="strong">${t.keyOnceText}</p>${showCopied(words, key)}`, 'success') }
    },
  }

  /** Returns the part to which a form belongs: the profile, if it is in no other one. */
  const partOf = (address: string): Tab =>
    parts.find((part) => part.address !== '' && (address === part.address || address.startsWith(`${part.address}/`))) ??
    (/^\/(passkeys|identities|second-factor|invitation|reset)/.test(address) ? parts[1]! : parts[0]!)

  return {
    pages: Object.fromEntries(parts.map((part) => [part.address, render(part)])),
    forms: Object.entries(forms).map(([address, submit]) => {
      const question = renderQuestion(address)
      return { address, submit, question, render: question ?? render(partOf(address)) }
    }),
  }
}

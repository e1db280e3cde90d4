import type { FastifyInstance } from 'fastify'
import type { UserRow } from '../../../db/tables/index.ts'
import { readIfMatch } from '../../../schema/http/entity-tag.ts'
import { InvalidInput, PreconditionFailed } from '../../../schema/http/errors.ts'
import { CreateApiKey } from '../../../schema/sign-in/api-keys.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { alert, badge, button, card, emptyState, facts, field, list, listRow, tabs } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'
import type { Context, Form, Outcome, Render } from './context.ts'
import {
  buttonForm, dangerForm, hiddenFields, readNames, REVOKE_LINKS, showAgent, showBytes, showState, showText, showTime,
} from './shown.ts'
import { showEntries, showPosts, showUploads } from './lists.ts'
import {
  changesOf, FORMER, formerOf, membersOf, merge, showConflicts, showFields, valuesOf, type Merged,
} from './user-form.ts'

const SHOWN = 5
const ENTRIES = 10

const parseKey = createParser(CreateApiKey)

/** Returns the page of a user, and what its forms do. */
export function createUserPage (app: FastifyInstance) {
  const {
    usherUsers: users, usherAccounts: accounts, usherAudit: audit,
    usherAccess: { userSessions }, usherSignIn: { apiKeys, credentials, passkeys, providers },
    usherMailLinks: { verificationLinks, passwordLinks },
    usherOptions: { userFields, mailer, without },
  } = app
  const members = membersOf(userFields)
  const uploads = without.includes('uploads') ? undefined : app.usherUploads
  const posts = without.includes('posts') ? undefined : app.usherPosts

  const idOf = ({ params }: Context): string => params['id']!.toLowerCase()

  const render: Render = async (context, outcome = {}) => {
    const { caller, path } = context
    const id = idOf(context)
    const user = await users.get(caller, id)
    const view = caller.viewOf(id)
    const shown = view.show(user) as Partial<UserRow> & Pick<UserRow, 'id' | 'name' | 'kind'>
    const page = { context, outcome, user: shown, version: view.tagOf(user), base: `${path}/users/${id}` }
    const isPerson = user.kind === 'person'
    const cards = await Promise.all([
      showProfile(page),
      isPerson && caller.allows('sessions:list-of-another', { ownerId: id }) && showSessions(page),
      isPerson && caller.allows('second-factor:read', { ownerId: id }) && showWays(page),
      caller.allows('api-keys:list', { ownerId: id }) && showKeys(page),
      uploads && caller.allows('uploads:list', { ownerId: id }) && showFiles(page),
      posts && caller.allows('posts:read', { ownerId: id }) && showUserPosts(page),
      caller.allows('audit:read', { ownerId: id }) && showLog(page),
      showDanger(page),
    ])
    const present = cards.filter((part) => part !== false && part !== undefined && part !== null)
    return {
      section: 'users',
      title: user.name,
      crumbs: [{ href: `${path}/users`, text: 'Users' }],
      content: html`<p class="badges">${showState(shown)}</p>
<div class="split">${tabs('Parts of this page', present.map(({ id, title }) => ({ href: `#${id}`, text: title })), { side: true })}
<div>${present.map(({ id, title, content }) => card(content, { id, title, danger: id === 'danger' }))}</div></div>`,
    }
  }

  interface Page {
    context: Context
    outcome: Outcome
    user: Partial<UserRow> & Pick<UserRow, 'id' | 'name' | 'kind'>
    version: string
    /** The address of the page. */
    base: string
  }

  interface Part { id: string, title: string, content: HtmlValue }

  function showProfile ({ outcome, user, version, base }: Page): Part {
    const { form, typed, error } = outcome
    const isOwn = form === 'profile' && typed !== undefined
    const merged: Merged | undefined =
      isOwn && error instanceof PreconditionFailed ? merge(members, typed, user) : undefined
    const current = valuesOf(members, user)
    const former = isOwn && !merged ? formerOf(members, typed) : current
    const fields = Object.fromEntries(members.map(({ name }) => [`${FORMER}${name}`, former[name] ?? '']))
    const sent = isOwn && !merged ? typed['version'] ?? version : version
    return {
      id: 'profile',
      title: 'Profile',
      content: html`
${merged && alert(html`<p class="strong">Somebody else has changed this user since you opened the page. Nothing was saved.</p>
<p>What you typed is still in the form. Compare, and save again.</p>${showConflicts(merged.conflicts)}`, 'warning')}
<form method="post" action="${base}">
${hiddenFields({ version: sent, ...fields })}
${showFields(members, merged?.values ?? (isOwn ? typed : current), isOwn ? error : undefined)}
<div class="actions">${button('Save')}</div></form>
${facts([
  ['Id', html`<code>${user.id}</code>`],
  ['Kind', user.kind],
  ['Created', showTime(user.createdAt!)],
  ['Changed', showTime(user.updatedAt!)],
])}
<div class="actions">
${user.emailVerified === false && user.kind === 'person' && mailer && buttonForm(`${base}/verification`, 'Send a link to verify the address')}
</div>`,
    }
  }

  async function showSessions ({ context: { caller }, user, base }: Page): Promise<Part> {
    const sessions = await userSessions.list(caller, user.id)
    return {
      id: 'sessions',
      title: 'Sessions',
      content: sessions.length === 0
        ? emptyState({ title: 'No session' })
        : html`${list(sessions.slice(0, SHOWN * 4).map((session) => listRow({
          title: showText(showAgent(session.userAgent)),
          badges: html` ${session.console && badge('console', 'info')} ${session.current && badge('this one', 'success')}`,
          hint: html`${session.address || 'unknown address'}, used ${showTime(session.lastUsedAt)}, ${
            session.amr.join(' ') || 'unknown authentication'}`,
          actions: buttonForm(`${base}/sessions/${session.id}/end`, 'End', { label: `End the session of ${showAgent(session.userAgent)}` }),
        })))}${sessions.length > SHOWN * 4 && html`<p class="hint">And ${sessions.length - SHOWN * 4} more.</p>`}
${buttonForm(`${base}/sessions/end`, 'End all sessions')}
<p class="hint">Ending all sessions also deletes the API keys, and voids every link in mails to this user.</p>`,
    }
  }

  async function showWays ({ context: { caller }, user, base }: Page): Promise<Part> {
    const { password, totp, recoveryCodesLeft, passkeys, identities } = await credentials.list(caller, user.id)
    return {
      id: 'ways',
      title: 'Ways to sign in',
      content: html`${list([
        listRow({
          title: 'Password',
          hint: password ? 'is set' : 'is not set',
          actions: mailer && !user.disabled && (password
            ? buttonForm(`${base}/reset`, 'Send a link to set a new one')
            : buttonForm(`${base}/invitation`, 'Send an invitation')),
        }),
        listRow({
          title: 'Authenticator app',
          hint: totp ? html`since ${showTime(totp.confirmedAt)}, ${recoveryCodesLeft} recovery codes left` : 'none',
          actions: totp && dangerForm(`${base}/second-factor/reset`, {
            id: 'confirm-factor',
            text: 'Remove',
            confirmation: 'The user has lost the device',
            explanation: 'It also ends every session, deletes the API keys, and voids every link in mails.',
          }),
        }),
        ...passkeys.map(({ id, name, createdAt, lastUsedAt }) => listRow({
          title: html`Passkey ${showText(name)}`,
          hint: html`added ${showTime(createdAt)}, ${lastUsedAt === null ? 'not used yet' : html`used ${showTime(lastUsedAt)}`}`,
          actions: buttonForm(`${base}/passkeys/${id}/remove`, 'Remove', { label: `Remove the passkey ${name}` }),
        })),
        ...identities.map(({ id, provider, email, createdAt, lastUsedAt }) => listRow({
          title: html`${provider} ${email !== null && showText(email)}`,
          hint: html`linked ${showTime(createdAt)}, used ${showTime(lastUsedAt)}`,
          actions: buttonForm(`${base}/identities/${id}/remove`, 'Unlink', { label: `Unlink ${provider}` }),
        })),
      ])}<p class="hint">Removing one ends every session and voids every link in mails. The last way to sign in cannot be removed.</p>`,
    }
  }

  async function showKeys ({ context: { caller }, outcome, user, base }: Page): Promise<Part> {
    const keys = await apiKeys.list(caller, user.id)
    const { typed = {}, error, form, result } = outcome
    const isOwn = form === 'key'
    return {
      id: 'keys',
      title: 'API keys',
      content: html`${isOwn && result}
${keys.length === 0
  ? emptyState({ title: 'No API key' })
  : list(keys.map(({ id, name, actions, createdAt, lastUsedAt, expiresAt }) => listRow({
    title: showText(name),
    hint: html`${actions === null ? 'all actions' : actions.join(', ')}; created ${showTime(createdAt)}, ${
      lastUsedAt === null ? 'not used yet' : html`used ${showTime(lastUsedAt)}`}${expiresAt !== null && html`, expires ${showTime(expiresAt)}`}`,
    actions: dangerForm(`${base}/keys/${id}/delete`, {
      id: `delete-${id}`, text: 'Delete', confirmation: `Delete ${name}`, option: uploads && REVOKE_LINKS,
    }),
  })))}
${user.kind === 'service' && caller.allows('api-keys:create', { ownerId: user.id }) && html`<form method="post" action="${base}/keys">
${field({ name: 'keyName', label: 'Name of a new key', required: true, value: isOwn && !result ? typed['keyName'] : '', attributes: { autocomplete: 'off' } })}
${field({
  name: 'actions',
  label: 'Actions',
  value: isOwn && !result ? typed['actions'] : '',
  hint: 'Separated by spaces, such as posts:create. Without any, it may do all that a key can.',
  error: isOwn ? error?.errors?.[0] : undefined,
  attributes: { autocomplete: 'off' },
})}
${button('Create a key', { kind: 'plain' })}</form>`}`,
    }
  }

  async function showFiles ({ context, user }: Page): Promise<Part> {
    const { rows, next } = await uploads!.list(context.caller, { user: user.id, limit: SHOWN })
    const sum = rows.reduce((sum, { size }) => sum + Number(size), 0)
    return {
      id: 'uploads',
      title: 'Files',
      content: rows.length === 0
        ? emptyState({ title: 'No file' })
        : html`${showUploads(context, rows, new Map([[user.id, user.name]]), { hidesOwner: true })}
<p>${next === null ? `${showBytes(sum)} in all` : html`<a href="${context.path}/uploads?user=${user.id}">All files</a>`}</p>`,
    }
  }

  async function showUserPosts ({ context, user }: Page): Promise<Part> {
    const { rows, next } = await posts!.records.list({
      fields: ['authorId', 'title', 'createdAt', 'rowVersion'], authorId: user.id, limit: SHOWN,
    })
    return {
      id: 'posts',
      title: 'Posts',
      content: rows.length === 0
        ? emptyState({ title: 'No post' })
        : html`${showPosts(context, rows, new Map([[user.id, user.name]]), { hidesOwner: true })}
${next !== null && html`<p><a href="${context.path}/posts?author=${user.id}">All posts</a></p>`}`,
    }
  }

  async function showLog ({ context, user }: Page): Promise<Part> {
    const { rows } = await audit.list(context.caller, { user: user.id, limit: ENTRIES })
    const names = await readNames(context, users.records, rows.map(({ actorId }) => actorId))
    return {
      id: 'log',
      title: 'Account log',
      content: html`${showEntries(context, rows, names, { hidesUser: true })}
<p><a href="${context.path}/log?user=${user.id}">The whole log of this user</a></p>`,
    }
  }

  function showDanger ({ context: { actor }, user, version, base }: Page): Part {
    const isOwn = actor.id === user.id
    return {
      id: 'danger',
      title: 'Disable and delete',
      content: isOwn
        ? html`<p>This is your own account. Another admin can disable or delete it.</p>`
        : html`${user.disabled
          ? buttonForm(`${base}/enable`, 'Enable this user', { fields: { version } })
          : dangerForm(`${base}/disable`, {
            id: 'confirm-disable',
            text: 'Disable this user',
            confirmation: `Disable ${user.name}`,
            explanation: 'It ends every session, deletes the API keys and voids every link. The record, files and posts stay.',
            fields: { version },
          })}
${dangerForm(`${base}/delete`, {
  id: 'confirm-delete',
  text: 'Delete this user',
  confirmation: `Delete ${user.name} for good`,
  explanation: 'The posts and files of the user are deleted as well. This cannot be undone.',
  fields: { version },
})}`,
    }
  }

  async function update (context: Context, given: Record<string, unknown>, version: string | undefined): Promise<void> {
    const { caller } = context
    const id = idOf(context)
    if (version === undefined) throw new InvalidInput('version is required: reload the page')
    await accounts.readAndUpdate(caller, id, given, readIfMatch(version, 'version'))
  }

  const requireConfirmed = ({ confirmed }: Form): void => {
    if (confirmed !== 'yes') throw new InvalidInput('Check the box first')
  }

  /** What the forms do. Each returns what the address says afterwards, or nothing if there is a result to show. */
  const forms: Readonly<Record<string, (context: Context, typed: Form) => Promise<string | Html>>> = {
    '': async (context, typed) => {
      await update(context, changesOf(members, typed, formerOf(members, typed)), typed['version'])
      return 'saved'
    },
    '/disable': async (context, typed) => {
      requireConfirmed(typed)
      await update(context, { disabled: true }, typed['version'])
      return 'disabled'
    },
    '/enable': async (context, typed) => {
      await update(context, { disabled: false }, typed['version'])
      return 'enabled'
    },
    '/delete': async (context, typed) => {
      requireConfirmed(typed)
      await accounts.delete(context.caller, idOf(context), readIfMatch(typed['version'] ?? '""', 'version'))
      return 'deleted'
    },
    '/sessions/end': async (context) => {
      await userSessions.endAll(context.caller, idOf(context))
      return 'sessions-ended'
    },
    '/sessions/:item/end': async (context) => {
      await userSessions.end(context.caller, context.params['item']!, idOf(context))
      return 'session-ended'
    },
    '/passkeys/:item/remove': async (context) => {
      await passkeys.remove(context.caller, idOf(context), context.params['item']!)
      return 'passkey-removed'
    },
    '/identities/:item/remove': async (context) => {
      await providers.removeIdentity(context.caller, idOf(context), context.params['item']!)
      return 'identity-removed'
    },
    '/second-factor/reset': async (context, typed) => {
      requireConfirmed(typed)
      await credentials.resetSecondFactor(context.caller, idOf(context))
      return 'factor-removed'
    },
    '/invitation': async (context) => {
      await passwordLinks.invite(context.caller, idOf(context))
      return 'invited'
    },
    '/verification': async (context) => {
      await verificationLinks.send(context.caller, idOf(context))
      return 'verification-sent'
    },
    '/reset': async (context) => {
      const { caller } = context
      const id = idOf(context)
      caller.authorize('users:read-email', { ownerId: id })
      const { email } = await users.get(caller, id)
      await passwordLinks.request(caller, email)
      return 'reset-sent'
    },
    '/keys/:item/delete': async (context, { revokeLinks }) => {
      const given = { revokesLinks: revokeLinks === 'yes' }
      await apiKeys.delete(context.caller, idOf(context), context.params['item']!, given)
      return 'key-deleted'
    },
    '/keys': async (context, { keyName: name = '', actions = '' }) => {
      const names = actions.split(/[\s,]+/).filter((action) => action !== '')
      const given = parseKey({ name, ...names.length > 0 && { actions: names } })
      const { key } = await apiKeys.create(context.caller, idOf(context), given)
      return alert(html`<p class="strong">The key was created. Store it now: it is not shown again.</p><p><code class="secret">${key}</code></p>`, 'success')
    },
  }

  return { render, forms }
}

// The organisations of a user, and of the one that is open its members, its invitations, and what else the role allows.
import { openPage } from './account.js'
import { announce, Failure, format, onSubmit, onUse, texts } from './page.js'
import { roleName } from './role-name.js'
import { call, confirm, readPage } from './session.js'

const MISSING = 404
const PAGE = 20
const OWNER = 'owner'
const DEFAULT_ROLE = 'member'
const find = (selector) => document.querySelector(selector)
const days = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium' })
const roles = new Map(JSON.parse(find('#organizations').dataset.roles))
const status = find('#organizations-status')
const chosenStatus = find('#chosen-status')
const chosenAlert = find('#chosen-alert')

const ignoreMissing = (error) => error.status === MISSING ? undefined : Promise.reject(error)

let user
let chosen
let search = ''

const may = (action) => roles.get(chosen.role).may.includes(action)
const pathOf = (rest = '') => `organizations/${chosen.id}${rest}`

// Returns a copy of a template, with texts in the parts that have these names.
function copy (id, values) {
  const item = find(id).content.cloneNode(true).firstElementChild
  for (const [part, text] of Object.entries(values)) item.querySelector(`[data-${part}]`).textContent = text
  return item
}

// Gives a button or a field of an item a name of its own.
function label (control, id, name) {
  name.id ||= `name-${id}`
  control.id = `${control.dataset.open === undefined ? 'use' : 'open'}-${id}`
  control.setAttribute('aria-labelledby', `${control.id} ${name.id}`)
}

const optionsOf = (names, selected) =>
  names.map((role) => new Option(roleName(role), role, role === selected, role === selected))

async function showOrganizations () {
  const rows = await call('GET', 'auth/organizations')
  find('#organizations').replaceChildren(...rows.map(toOrganization))
  find('#organizations-none').hidden = rows.length > 0
  find('#organizations').hidden = rows.length === 0
  chosen = rows.find(({ id }) => id === chosen?.id)
  await showChosen()
}

function toOrganization (organization) {
  const { id, name, slug, role } = organization
  const item = copy('#organization', { name, slug, role: roleName(role) })
  const [open, leave] = ['open', 'leave'].map((part) => item.querySelector(`[data-${part}]`))
  label(open, id, item.querySelector('[data-name]'))
  label(leave, id, item.querySelector('[data-name]'))
  open.dataset.id = id
  onUse(open, 'click', find('#organizations-alert'), async () => {
    status.textContent = chosenStatus.textContent = chosenAlert.textContent = ''
    chosen = chosen?.id === id ? undefined : organization
    await showChosen()
    if (chosen) find('#chosen-name').focus()
  })
  onUse(leave, 'click', find('#organizations-alert'), async () => {
    status.textContent = ''
    await confirm(format(texts.organizationLeaveConfirm, { organization: name }), leave.textContent)
    await call('DELETE', `organizations/${id}/members/${user.id}`).catch(ignoreMissing)
    await showOrganizations()
    announce(status, format(texts.organizationLeft, { organization: name }))
  })
  return item
}

// Shows the organisation that is open, if one is.
async function showChosen () {
  for (const button of document.querySelectorAll('[data-open]')) {
    button.setAttribute('aria-expanded', `${button.dataset.id === chosen?.id}`)
  }
  search = ''
  find('#search-form').reset()
  if (!chosen) {
    find('#chosen').hidden = true
    return
  }
  const { name, slug } = chosen
  find('#chosen-name').textContent = name
  find('#change-name').value = name
  find('#change-slug').value = slug
  find('#change-section').hidden = !may('organizations:update')
  find('#remove-section').hidden = !may('organizations:delete')
  find('#members-section').hidden = !may('members:list')
  await Promise.all([may('members:list') && members.open(), showInvitations()])
  find('#chosen').hidden = false
}

async function showInvitations () {
  if (!invitations) return
  find('#invitations-section').hidden = !may('members:invite')
  if (!may('members:invite')) return
  find('#invited-role').replaceChildren(...optionsOf(roles.get(chosen.role).gives, DEFAULT_ROLE))
  await invitations.open()
}

// A list that is read in pages.
function createList (name, pathOfPage, toItem) {
  const [list, more, none] = [`#${name}`, `#${name}-more`, `#${name}-none`].map(find)
  let next

  async function show (after) {
    const page = await readPage(`${pathOfPage()}?limit=${PAGE}${after ? `&after=${after}` : ''}${
      search && name === 'members' ? `&${new URLSearchParams({ q: search })}` : ''}`)
    next = page.next
    const items = page.rows.map(toItem)
    if (after) list.append(...items)
    else list.replaceChildren(...items)
    more.hidden = next === undefined
    none.hidden = list.childElementCount > 0
    list.hidden = !none.hidden
  }

  onUse(more, 'click', chosenAlert, () => show(next))
  return { open: () => show() }
}

const members = createList('members', () => pathOf('/members'), toMember)
const invitations = find('#invitations') && createList('invitations', () => pathOf('/invitations'), toInvitation)

function toMember ({ userId, name, email = '', role }) {
  const isOwn = userId === user.id
  // Only owners make and remove owners.
  const isWithin = role !== OWNER || chosen.role === OWNER
  const item = copy('#member', { name, email, role: roleName(role) })
  const [select, remove] = [item.querySelector('select'), item.querySelector('[data-remove]')]
  const canChange = may('members:update') && isWithin
  item.querySelector('[data-you]').hidden = !isOwn
  item.querySelector('[data-role]').hidden = canChange
  select.hidden = !canChange
  remove.hidden = isOwn || !may('members:remove') || !isWithin
  select.setAttribute('aria-label', `${select.getAttribute('aria-label')}: ${name}`)
  select.replaceChildren(...optionsOf([...new Set([role, ...roles.get(chosen.role).gives])], role))
  label(remove, userId, item.querySelector('[data-name]'))
  onUse(select, 'change', chosenAlert, async () => {
    chosenStatus.textContent = ''
    try {
      await call('PATCH', pathOf(`/members/${userId}`), { role: select.value })
    } catch (error) {
      select.value = role
      throw error
    }
    role = select.value
    // With another role, the user may do other things.
    if (isOwn) await showOrganizations()
    announce(chosenStatus, format(texts.memberChanged, { name }))
  })
  onUse(remove, 'click', chosenAlert, async () => {
    chosenStatus.textContent = ''
    await confirm(format(texts.memberRemoveConfirm, { name }), remove.textContent)
    await call('DELETE', pathOf(`/members/${userId}`)).catch(ignoreMissing)
    await members.open()
    announce(chosenStatus, format(texts.memberRemoved, { name }))
  })
  return item
}

function toInvitation ({ id, email, role, expiresAt }) {
  const item = copy('#invitation', { email, role: roleName(role) })
  const [withdraw, time] = [item.querySelector('[data-withdraw]'), item.querySelector('time')]
  time.dateTime = expiresAt
  time.textContent = days.format(new Date(expiresAt))
  label(withdraw, id, item.querySelector('[data-email]'))
  onUse(withdraw, 'click', chosenAlert, async () => {
    await call('DELETE', pathOf(`/invitations/${id}`)).catch(ignoreMissing)
    await invitations.open()
    announce(chosenStatus, texts.invitationWithdrawn)
  })
  return item
}

onSubmit(find('#search-form'), async ({ q }) => {
  search = q.trim()
  await members.open()
})

if (invitations) {
  onSubmit(find('#invitation-form'), async ({ email, role }) => {
    await call('POST', pathOf('/invitations'), { email, role })
    find('#invitation-form').reset()
    await invitations.open()
    announce(chosenStatus, format(texts.invitationSent, { email }))
  })
}

onSubmit(find('#change-form'), async ({ name, slug }) => {
  await call('PATCH', pathOf(), { name, ...slug && { slug } })
  await showOrganizations()
  announce(chosenStatus, texts.organizationSaved)
})

onSubmit(find('#found-form'), async ({ name, slug }) => {
  chosen = await call('POST', 'organizations', { name, ...slug && { slug } })
  find('#found-form').reset()
  await showOrganizations()
  announce(status, format(texts.organizationFounded, { organization: chosen.name }))
})

const deletion = find('#deletion')
onUse(find('#delete-organization'), 'click', chosenAlert, async () => {
  find('#deletion-form').reset()
  find('#deletion-alert').textContent = ''
  find('#deletion-organization').textContent = chosen.name
  deletion.showModal()
  find('#deletion-title').focus()
})
onUse(find('#deletion-cancel'), 'click', find('#deletion-alert'), async () => deletion.close())
onSubmit(find('#deletion-form'), async ({ typed }) => {
  const { name } = chosen
  if (typed.trim().toLowerCase() !== name.toLowerCase()) throw new Failure(texts.organizationDeleteOther)
  await call('DELETE', pathOf()).catch(ignoreMissing)
  deletion.close()
  await showOrganizations()
  announce(status, format(texts.organizationDeleted, { organization: name }))
})

await openPage(async (given) => {
  user = given
  const { founders } = find('#found-section').dataset
  find('#found-section').hidden = founders !== 'anyone' && user.role !== 'admin'
  await showOrganizations()
})

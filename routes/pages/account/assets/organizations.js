// The organisations of a user, and of the one that is open its members, its invitations, and what else the role allows.
import { openPage } from './account.js'
import { offerDeletion } from './deletion.js'
import { announce, Failure, format, nameMenu, onSubmit, onUse, texts } from './page.js'
import { roleName } from './role-name.js'
import { changesOf, fill, showFacts } from './records.js'
import { call, confirm, readPage } from './session.js'
import { valuesOf } from './values.js'

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

// The fields of the host that are written there.
const fieldsOfHost = [...find('#change-form').querySelectorAll('[data-host]')]

let user
let rows = []
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
  control.id = `use-${id}`
  control.setAttribute('aria-labelledby', `${control.id} ${name.id}`)
}

const optionsOf = (names, selected) =>
  names.map((role) => new Option(roleName(role), role, role === selected, role === selected))

async function showOrganizations () {
  rows = await call('GET', 'auth/organizations')
  find('#organizations').replaceChildren(...rows.map(toOrganization))
  find('#organizations-none').hidden = rows.length > 0
  find('#organizations').hidden = rows.length === 0
  find('#found-section').open = rows.length === 0
  await showPlace()
}

function toOrganization ({ id, name, slug, role }) {
  const item = copy('#organization', { name, slug, role: roleName(role) })
  item.querySelector('[data-open]').href = `#${id}`
  return item
}

// Shows the organisation that the fragment of the address names, otherwise all.
async function showPlace () {
  const [id, part] = location.hash.slice(1).split('/')
  chosen = rows.find((row) => row.id === id)
  find('#all').hidden = chosen !== undefined
  find('#title').classList.toggle('visually-hidden', chosen !== undefined)
  if (chosen) await showChosen()
  else find('#chosen').hidden = true
  if (chosen) showPart(part)
}

function leavePlace () {
  history.replaceState(null, '', location.pathname)
  return showOrganizations()
}

async function showChosen () {
  const { id, name, slug, role } = chosen
  search = ''
  find('#search-form').reset()
  find('#chosen-name').textContent = name
  find('#chosen-role').textContent = roleName(role)
  find('#change-name').value = name
  find('#change-slug').value = slug
  fill(fieldsOfHost, chosen)
  find('#change-section').hidden = !may('organizations:update')
  showFacts(find('#chosen-facts'), chosen, may('organizations:update') ? fieldsOfHost.map(({ name }) => name) : [])
  find('#remove-section').hidden = !may('organizations:delete')
  for (const link of partLinks) {
    link.href = `#${id}/${link.dataset.part}`
    link.parentElement.hidden = !mayOpen[link.dataset.part]()
  }
  await Promise.all([may('members:list') && members.open(), showInvitations()])
  find('#chosen').hidden = false
}

const partLinks = [...document.querySelectorAll('#parts a')]
const mayOpen = {
  members: () => may('members:list'),
  invitations: () => may('members:invite'),
  settings: () => may('organizations:update') || may('organizations:delete'),
}

// Shows a part of the organisation, or the first of those that the role allows.
function showPart (name) {
  const open = partLinks.filter(({ parentElement }) => !parentElement.hidden).map(({ dataset }) => dataset.part)
  const shown = open.includes(name) ? name : open[0]
  for (const link of partLinks) {
    const { part } = link.dataset
    find(`#${part}-section`).hidden = part !== shown
    if (part === shown) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
}

addEventListener('hashchange', async () => {
  const former = chosen?.id
  status.textContent = chosenStatus.textContent = chosenAlert.textContent = ''
  try {
    await showPlace()
  } catch (error) {
    chosenAlert.textContent = error instanceof Failure ? error.message : texts.failed
  }
  if (chosen?.id !== former) find(chosen ? '#chosen-name' : '#title').focus()
})

onUse(find('[data-leave]'), 'click', chosenAlert, async () => {
  const { id, name } = chosen
  chosenStatus.textContent = ''
  await confirm(format(texts.organizationLeaveConfirm, { organization: name }), find('[data-leave]').textContent)
  await call('DELETE', `organizations/${id}/members/${user.id}`).catch(ignoreMissing)
  await leavePlace()
  announce(status, format(texts.organizationLeft, { organization: name }))
})

async function showInvitations () {
  if (!invitations || !may('members:invite')) return
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
  const [select, remove, menu] = ['select', '[data-remove]', '.menu'].map((part) => item.querySelector(part))
  const canChange = may('members:update') && isWithin
  item.querySelector('[data-you]').hidden = !isOwn
  select.parentElement.hidden = !canChange
  remove.hidden = isOwn || !may('members:remove') || !isWithin
  menu.hidden = !canChange && remove.hidden
  nameMenu(item, name)
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
    menu.open = false
    item.querySelector('[data-role]').textContent = roleName(role)
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
  await call('PATCH', pathOf(), { name, ...slug && { slug }, ...changesOf(fieldsOfHost, chosen) })
  await showOrganizations()
  announce(chosenStatus, texts.organizationSaved)
})

onSubmit(find('#found-form'), async ({ name, slug }) => {
  const { id } = await call('POST', 'organizations', valuesOf(find('#found-form'), { name, ...slug && { slug } }))
  find('#found-form').reset()
  history.pushState(null, '', `#${id}`)
  await showOrganizations()
  announce(chosenStatus, format(texts.organizationFounded, { organization: name }))
})

const remove = () => call('DELETE', pathOf()).catch(ignoreMissing)
offerDeletion(find('#delete-organization'), chosenAlert, () => chosen.name, remove, async () => {
  const { name } = chosen
  await leavePlace()
  announce(status, format(texts.organizationDeleted, { organization: name }))
})

await openPage(async (given) => {
  user = given
  const { founders } = find('#found-section').dataset
  find('#found-section').hidden = founders !== 'anyone' && user.role !== 'admin'
  await showOrganizations()
})

// The files of a user: their visibility, their links, and their deletion.
import { openPage } from './account.js'
import { announce, nameMenu, onSubmit, onUse, pageUrl, texts } from './page.js'
import { call, confirm, readPage } from './session.js'

const MISSING = 404
const PAGE = 20
const find = (selector) => document.querySelector(selector)
const { lang } = document.documentElement
const days = new Intl.DateTimeFormat(lang, { dateStyle: 'medium' })
const times = new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'short' })
const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte']

const ignoreMissing = (error) => error.status === MISSING ? undefined : Promise.reject(error)

let next

// Shows the newest files.
async function showFiles () {
  find('#files').replaceChildren()
  next = undefined
  await showMore()
}

async function showMore () {
  const page = await readPage(`uploads?limit=${PAGE}${next ? `&after=${next}` : ''}`)
  next = page.next
  find('#files').append(...page.rows.map(toItem))
  find('#files-more').hidden = next === undefined
  showWhetherEmpty()
}

function showWhetherEmpty () {
  const isEmpty = find('#files').childElementCount === 0
  find('#files-none').hidden = !isEmpty
  find('#files').hidden = isEmpty
}

function sizeOf (bytes) {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  // Short forms of bytes have no plural.
  const unitDisplay = power === 0 ? 'long' : 'short'
  const format = { style: 'unit', unit: units[power], unitDisplay, maximumFractionDigits: 1 }
  return new Intl.NumberFormat(lang, format).format(bytes / 1000 ** power)
}

function showTime (item, instant) {
  const time = item.querySelector('time')
  time.dateTime = instant
  time.textContent = days.format(new Date(instant))
  time.title = times.format(new Date(instant))
}

// Gives a button of an item a name of its own.
function label (button, id, name) {
  button.id = id
  button.setAttribute('aria-labelledby', `${id} ${name.id}`)
}

function toItem (file) {
  const item = find('#file').content.cloneNode(true).firstElementChild
  const [name, toggle, share, remove] =
    ['name', 'toggle', 'share', 'delete'].map((part) => item.querySelector(`[data-${part}]`))
  name.id = `file-${file.id}`
  nameMenu(item, file.filename)
  label(toggle, `toggle-${file.id}`, name)
  label(share, `share-${file.id}`, name)
  label(remove, `delete-${file.id}`, name)
  item.querySelector('[data-size]').textContent = sizeOf(file.size)
  showTime(item, file.createdAt)
  show()

  // A private file cannot be opened by its address, because a page cannot send a token along.
  function show () {
    const isPublic = file.visibility === 'public'
    const link = document.createElement('a')
    link.href = pageUrl(`api/uploads/${file.id}`)
    link.textContent = file.filename
    name.replaceChildren(isPublic ? link : file.filename)
    item.querySelector('[data-visibility]').textContent = isPublic ? texts.filePublic : texts.filePrivate
    toggle.textContent = isPublic ? texts.fileMakePrivate : texts.fileMakePublic
  }

  const alert = find('#files-alert')
  onUse(toggle, 'click', alert, async () => {
    const visibility = file.visibility === 'public' ? 'private' : 'public'
    file = await call('PATCH', `uploads/${file.id}`, { visibility })
    show()
    find('#files-status').textContent = texts.fileChanged
  })
  onUse(remove, 'click', alert, async () => {
    await confirm(texts.fileDeleteConfirm, remove.textContent)
    await call('DELETE', `uploads/${file.id}`).catch(ignoreMissing)
    item.remove()
    showWhetherEmpty()
    announce(find('#files-status'), texts.fileDeleted)
  })
  addLinks(item, share, file.id, alert)
  return item
}

function addLinks (item, share, id, alert) {
  const [links, form, created] = ['[data-links]', 'form', '[data-created]'].map((part) => item.querySelector(part))
  for (const field of ['name', 'seconds']) {
    form.elements[field].id = `${field}-${id}`
    form.querySelector(`[data-for=${field}]`).htmlFor = `${field}-${id}`
  }

  async function showLinks () {
    const rows = await call('GET', `uploads/${id}/links`)
    links.querySelector('ul').replaceChildren(...rows.map((link) => toLink(link)))
    links.querySelector('[data-links-none]').hidden = rows.length > 0
  }

  function toLink (link) {
    const row = find('#file-link').content.cloneNode(true).firstElementChild
    const [name, revoke] = [row.querySelector('[data-name]'), row.querySelector('button')]
    name.id = `link-${link.id}`
    name.textContent = link.name || texts.linkUnnamed
    // Of a key that was deleted, only the id is known.
    const key = link.keyName ?? link.keyId
    if (key !== null) row.querySelector('[data-key]').textContent = ` · ${texts.linkOfKey.replace('{name}', () => key)}`
    label(revoke, `revoke-${link.id}`, name)
    showTime(row, link.expiresAt)
    onUse(revoke, 'click', alert, async () => {
      await call('DELETE', `uploads/${id}/links/${link.id}`).catch(ignoreMissing)
      created.hidden = true
      await showLinks()
      announce(find('#files-status'), texts.linkRevoked)
    })
    return row
  }

  onUse(share, 'click', alert, async () => {
    if (links.hidden) await showLinks()
    links.hidden = !links.hidden
    created.hidden = true
    share.setAttribute('aria-expanded', `${!links.hidden}`)
  })
  onSubmit(form, async ({ name, seconds }) => {
    const { url } = await call('POST', `uploads/${id}/links`, { name, seconds: Number(seconds) })
    created.querySelector('code').textContent = new URL(url, location.href).href
    created.hidden = false
    form.reset()
    await showLinks()
    created.querySelector('[role=status]').focus()
  })
}

onUse(find('#files-more'), 'click', find('#files-alert'), showMore)

await openPage(showFiles)

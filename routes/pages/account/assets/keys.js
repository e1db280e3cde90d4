// The API keys of a user.
import { openPage } from './account.js'
import { announce, nameMenu, onSubmit, onUse, texts } from './page.js'
import { call, confirm } from './session.js'

const NOT_FOUND = 404
const DAY_MS = 86_400_000
const find = (selector) => document.querySelector(selector)
const days = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium' })
const dayOf = (instant) => instant === null ? texts.keyNever : days.format(new Date(instant))
const form = find('#key-form')

let isEmpty = true

async function showKeys () {
  const list = await call('GET', 'auth/keys')
  find('#keys').hidden = list.length === 0
  isEmpty = list.length === 0
  find('#keys-none').hidden = !isEmpty
  find('#keys').replaceChildren(...list.map(toItem))
}

// An action that the policy has no more is shown as it is.
function wordsOf (action) {
  const box = [...document.querySelectorAll('#key-actions input')].find(({ value }) => value === action)
  return box?.dataset.words ?? action
}

function toItem ({ id, name, actions, createdAt, lastUsedAt, expiresAt }) {
  const item = find('#key').content.cloneNode(true)
  const title = item.querySelector('[data-name]')
  title.id = `key-${id}`
  title.textContent = name
  item.querySelector('[data-created]').textContent = dayOf(createdAt)
  item.querySelector('[data-used]').textContent = dayOf(lastUsedAt)
  item.querySelector('[data-expires]').textContent = dayOf(expiresAt)
  nameMenu(item, name)
  if (actions) {
    const place = item.querySelector('[data-actions]')
    place.textContent = actions.map(wordsOf).join(', ')
    place.hidden = false
  }
  const button = item.querySelector('[data-delete]')
  button.id = `delete-${id}`
  button.setAttribute('aria-labelledby', `${button.id} ${title.id}`)
  onUse(button, 'click', find('#keys-alert'), async () => {
    // A mount may have no files.
    const option = form.dataset.files === undefined ? undefined : texts.keyRevokeLinks
    const revokesLinks = await confirm(texts.keyDeleteConfirm, button.textContent, option)
    // Another page may have deleted it already.
    await call('DELETE', `auth/keys/${id}${revokesLinks ? '?revokeLinks=true' : ''}`)
      .catch((error) => error.status === NOT_FOUND ? undefined : Promise.reject(error))
    await showKeys()
    announce(find('#keys-status'), texts.keyDeleted)
  })
  return item
}

function open (isOpen) {
  form.hidden = !isOpen
  find('#key-start').hidden = isOpen
  find('#keys-none').hidden = isOpen || !isEmpty
  form.reset()
  if (isOpen) find('#key-name').focus()
}

onUse(find('#key-new'), 'click', find('#keys-alert'), async () => {
  find('#keys-status').textContent = ''
  open(true)
})
onUse(find('#key-cancel'), 'click', find('#keys-alert'), async () => {
  open(false)
  find('#key-new').focus()
})

onSubmit(form, async ({ name, days }) => {
  const actions = new FormData(form).getAll('actions')
  const { key } = await call('POST', 'auth/keys', {
    name,
    ...actions.length > 0 && { actions },
    ...days !== '' && { expiresAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString() },
  })
  open(false)
  find('#key-start').hidden = true
  find('#key-text').textContent = key
  find('#key-copied').textContent = ''
  find('#key-shown').hidden = false
  find('#key-title').focus()
  await showKeys()
})

const copy = find('#key-copy')
copy.hidden = navigator.clipboard === undefined
onUse(copy, 'click', find('#keys-alert'), async () => {
  await navigator.clipboard.writeText(find('#key-text').textContent)
  find('#key-copied').textContent = texts.keyCopied
})

onUse(find('#key-done'), 'click', find('#keys-alert'), async () => {
  find('#key-shown').hidden = true
  find('#key-text').textContent = ''
  find('#key-start').hidden = false
  find('#title').focus()
})

await openPage(showKeys)

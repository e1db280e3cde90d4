// What users say about themselves: Usher's members, and the fields of the host.
import { openPage, showWho } from './account.js'
import { format, onSubmit, onUse, texts } from './page.js'
import { call, takeTyped } from './session.js'
import { valueOf } from './values.js'

const find = (selector) => document.querySelector(selector)
const fields = [...document.querySelectorAll('#profile [data-member]')]
const isDeferred = find('#email').dataset.deferred !== undefined

let user

function showUser () {
  find('#profile').dataset.user = user.id
  for (const field of fields) {
    const value = user[field.name]
    if (field.type === 'checkbox') field.checked = value === true
    else field.value = value ?? ''
    field.dataset.kept = field.value
  }
  showFacts()
  showWho(user)
  const unverified = find('#unverified')
  if (unverified) unverified.hidden = user.emailVerified !== false
}

const numbers = new Intl.NumberFormat(document.documentElement.lang)

function shown (value, { dataset }) {
  if (typeof value === 'boolean') return texts[value ? 'yes' : 'no']
  if (typeof value === 'number') return numbers.format(value)
  // Of a choice of words, as in forms.
  return dataset.words !== undefined && /^[a-z]{3,}(?:[-_ ][a-z]+)*$/.test(value)
    ? `${value.slice(0, 1).toUpperCase()}${value.slice(1).replace(/[-_]/g, ' ')}`
    : value
}

// What the host shows to users who do not write it.
function showFacts () {
  const card = find('#shown-fields')
  if (!card) return
  for (const place of card.querySelectorAll('[data-fact]')) {
    const value = user[place.dataset.fact]
    const isMissing = value === undefined || value === null
    place.hidden = place.previousElementSibling.hidden = isMissing
    place.textContent = isMissing ? '' : shown(value, place)
  }
  card.hidden = card.querySelector('dd:not([hidden])') === null
}

onSubmit(find('#profile'), async () => {
  const status = find('#profile [role=status]')
  status.textContent = ''
  const changes = {}
  for (const field of fields) {
    const value = valueOf(field)
    const former = user[field.name] ?? (field.type === 'checkbox' ? false : null)
    if (value !== former) changes[field.name] = value === null && field.required ? '' : value
  }
  const former = user.email
  // Where the service sends mails, a new address counts only when its link is opened: it may have a mistake.
  user = await call('PATCH', `users/${user.id}`, changes, isDeferred ? { prefer: 'respond-async' } : {})
  // The former address remains until the new one is verified, which may come back in another spelling.
  const isPending = changes.email !== undefined && former !== undefined && user.email === former
  showUser()
  status.textContent = isPending ? format(texts.emailPending, { email: changes.email }) : texts.profileSaved
})

const verify = find('#verify')
if (verify) {
  onUse(verify, 'click', find('#verification-alert'), async () => {
    find('#verification-status').textContent = ''
    await call('POST', `users/${user.id}/email-verification`)
    find('#verification-status').textContent = texts.verifySent
  })
}

function restoreTyped () {
  const typed = takeTyped(user.id)
  for (const [id, value] of typed) {
    const field = document.getElementById(id)
    if (field?.dataset.kept !== undefined) field.value = value
  }
  if (typed.length > 0) find('#typed-kept').textContent = texts.typedKept
}

await openPage(async (given) => {
  user = given
  showUser()
  restoreTyped()
})

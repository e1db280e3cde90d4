// What users say about themselves: Usher's members, and the fields of the host.
import { openPage, showWho } from './account.js'
import { format, onSubmit, onUse, texts } from './page.js'
import { changesOf, fill, showFacts } from './records.js'
import { call, takeTyped } from './session.js'

const find = (selector) => document.querySelector(selector)
const fields = [...document.querySelectorAll('#profile [data-member]')]
const isDeferred = find('#email').dataset.deferred !== undefined

let user

function showUser () {
  find('#profile').dataset.user = user.id
  fill(fields, user)
  for (const field of fields) field.dataset.kept = field.value
  // What the host shows to users who do not write it.
  showFacts(find('#shown-fields'), user)
  showWho(user)
  const unverified = find('#unverified')
  if (unverified) unverified.hidden = user.emailVerified !== false
}

onSubmit(find('#profile'), async () => {
  const status = find('#profile [role=status]')
  status.textContent = ''
  const changes = changesOf(fields, user)
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

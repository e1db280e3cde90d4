import { showKeys } from './keys.js'
import { announce, Failure, onSubmit, onUse, texts } from './page.js'
import { explainReturn, showIdentities } from './identities.js'
import { showFiles } from './files.js'
import { call, leave, refresh } from './session.js'
import { requireFactor, showWays } from './ways.js'

const UNAUTHORIZED = 401
const find = (selector) => document.querySelector(selector)
const times = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })

let user

function showUser () {
  find('#name').value = user.name
  find('#email').value = user.email ?? ''
  for (const field of document.querySelectorAll('[data-username]')) field.value = user.email ?? ''
  const unverified = find('#unverified')
  if (unverified) unverified.hidden = user.emailVerified !== false
}

async function showSessions () {
  const items = []
  for (const session of await call('GET', 'auth/sessions')) {
    const item = find('#session').content.cloneNode(true)
    const device = item.querySelector('[data-device]')
    const button = item.querySelector('button')
    device.textContent = session.userAgent || texts.unknownDevice
    device.id = `session-${session.id}`
    button.id = `end-${session.id}`
    button.setAttribute('aria-labelledby', `${button.id} ${device.id}`)
    if (!session.current) item.querySelector('[data-current]').remove()
    item.querySelector('[data-address]').textContent = session.address
    const time = item.querySelector('time')
    time.dateTime = session.lastUsedAt
    time.textContent = times.format(new Date(session.lastUsedAt))
    onUse(button, 'click', find('#sessions-alert'), () => endSession(session))
    items.push(item)
  }
  find('#sessions').replaceChildren(...items)
}

async function endSession ({ id, current }) {
  if (current) return logOut()
  find('#sessions-status').textContent = ''
  // Another page may have ended it already.
  await call('DELETE', `auth/sessions/${id}`).catch((error) => error.status === 404 ? undefined : Promise.reject(error))
  await showSessions()
  find('#sessions-status').textContent = texts.sessionEnded
  // The button that had the focus is gone.
  find('#sessions-title').focus()
}

async function logOut () {
  await call('POST', 'auth/logout')
  await leave('?out')
}

onSubmit(find('#profile'), async ({ name, email }) => {
  const status = find('#profile [role=status]')
  status.textContent = ''
  const changes = { ...name !== user.name && { name }, ...email !== user.email && { email } }
  const former = user.email
  user = await call('PATCH', `users/${user.id}`, changes)
  // The former address remains until the new one is verified, which may come back in another spelling.
  const isPending = changes.email !== undefined && former !== undefined && user.email === former
  showUser()
  status.textContent = isPending ? texts.emailPending : texts.profileSaved
})

onSubmit(find('#password-form'), async ({ currentPassword, password }) => {
  const form = find('#password-form')
  form.querySelector('[role=status]').textContent = ''
  await call('PUT', 'auth/password', { currentPassword, password })
  form.reset()
  for (const field of form.querySelectorAll('[name]')) field.type = 'password'
  showUser()
  form.querySelector('[role=status]').textContent = texts.passwordChanged
  await showSessions()
})

const verify = find('#verify')
if (verify) {
  onUse(verify, 'click', find('#verification-alert'), async () => {
    find('#verification-status').textContent = ''
    await call('POST', `users/${user.id}/email-verification`)
    find('#verification-status').textContent = texts.verifySent
  })
}

onUse(find('#log-out'), 'click', find('#sessions-alert'), logOut)
onUse(find('#required-log-out'), 'click', find('#required-alert'), logOut)
onUse(find('#log-out-everywhere'), 'click', find('#sessions-alert'), async () => {
  await call('DELETE', 'auth/sessions')
  await logOut()
})

// A browser may show the page from its memory after the user has logged out.
addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload() })

// Whoever must have a second factor sees only how to get one, until then.
function showRest (isShown) {
  for (const section of document.querySelectorAll('[data-rest]')) section.hidden = !isShown
}

async function showAll () {
  await Promise.all([showSessions(), showWays(showSessions), showKeys(), showIdentities(), showFiles()])
  showRest(true)
}

try {
  user = await refresh()
  showUser()
  await showAll().catch((error) => {
    if (error.code !== 'SECOND_FACTOR_MISSING') throw error
    showRest(false)
    return requireFactor(showAll)
  })
  find('#account').hidden = false
  explainReturn()
} catch (error) {
  if (error.status === UNAUTHORIZED) await leave()
  if (!(error instanceof Failure)) console.error(error)
  announce(find('#failure'), error instanceof Failure ? error.message : texts.failed)
}

import { showKeys } from './keys.js'
import { showData } from './data.js'
import { describeUserAgent } from './functions.js'
import { ago, announce, Failure, format, onSubmit, onUse, showRunning, texts } from './page.js'
import { explainReturn, showIdentities } from './identities.js'
import { showFiles } from './files.js'
import { call, leave, refresh, takeTyped } from './session.js'
import { requireFactor, showWays } from './ways.js'

const UNAUTHORIZED = 401
const find = (selector) => document.querySelector(selector)
const times = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })
const ACTIVE_MS = 5 * 60_000

let user

function showUser () {
  find('#profile').dataset.user = user.id
  for (const field of document.querySelectorAll('#profile [data-member]')) {
    field.value = field.dataset.kept = user[field.name] ?? ''
  }
  for (const field of document.querySelectorAll('[data-username]')) field.value = user.email ?? ''
  const toConsole = find('#to-console')
  if (toConsole) toConsole.hidden = user.role !== 'admin'
  const unverified = find('#unverified')
  if (unverified) unverified.hidden = user.emailVerified !== false
}

async function showSessions () {
  const items = []
  const sessions = await call('GET', 'auth/sessions')
  // This device comes first.
  sessions.sort((one, other) => other.current - one.current)
  find('#end-others').hidden = sessions.length < 2
  for (const session of sessions) {
    const item = find('#session').content.cloneNode(true)
    const device = item.querySelector('[data-device]')
    const button = item.querySelector('button')
    device.textContent = nameOf(session.userAgent)
    device.title = session.userAgent ?? ''
    device.id = `session-${session.id}`
    button.id = `end-${session.id}`
    button.setAttribute('aria-labelledby', `${button.id} ${device.id}`)
    if (!session.current) item.querySelector('[data-current]').remove()
    item.querySelector('[data-address]').textContent = session.address
    const used = item.querySelector('[data-used]')
    const isActive = session.current || Date.now() - new Date(session.lastUsedAt) < ACTIVE_MS
    used.textContent = isActive ? texts.activeNow : `${texts.lastUsed}: ${ago(session.lastUsedAt)}`
    used.title = times.format(new Date(session.lastUsedAt))
    onUse(button, 'click', find('#sessions-alert'), () => endSession(session))
    items.push(item)
  }
  find('#sessions').replaceChildren(...items)
}

// In words where the browser is known, otherwise as the program calls itself.
function nameOf (userAgent) {
  const { browser, system } = describeUserAgent(userAgent ?? '')
  if (browser && system) return format(texts.deviceOn, { browser, system })
  return browser ?? system ?? (userAgent || texts.unknownDevice)
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

const isDeferred = find('#email').dataset.deferred !== undefined

onSubmit(find('#profile'), async () => {
  const status = find('#profile [role=status]')
  status.textContent = ''
  const changes = {}
  for (const { name, value, required } of document.querySelectorAll('#profile [data-member]')) {
    if (value !== (user[name] ?? '')) changes[name] = value === '' && !required ? null : value
  }
  const former = user.email
  // Where the service sends mails, a new address counts only when its link is opened: it may have a mistake.
  user = await call('PATCH', `users/${user.id}`, changes, isDeferred ? { prefer: 'respond-async' } : {})
  // The former address remains until the new one is verified, which may come back in another spelling.
  const isPending = changes.email !== undefined && former !== undefined && user.email === former
  showUser()
  status.textContent = isPending ? format(texts.emailPending, { email: changes.email }) : texts.profileSaved
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
onUse(find('#end-others'), 'click', find('#sessions-alert'), async () => {
  find('#sessions-status').textContent = ''
  await call('DELETE', 'auth/sessions')
  await showSessions()
  find('#sessions-status').textContent = texts.othersEnded
  find('#sessions-title').focus()
})
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

// The part of the page that its address names, or the first.
function showWhere () {
  const links = [...document.querySelectorAll('.tabs a')]
  const current = links.find(({ hash }) => hash === location.hash) ?? links[0]
  for (const link of links) {
    if (link === current) link.setAttribute('aria-current', 'true')
    else link.removeAttribute('aria-current')
  }
}

addEventListener('hashchange', showWhere)

function restoreTyped () {
  const typed = takeTyped(user.id)
  for (const [id, value] of typed) {
    const field = document.getElementById(id)
    if (field?.dataset.kept !== undefined) field.value = value
  }
  if (typed.length > 0) find('#typed-kept').textContent = texts.typedKept
}

showRunning()
find('#loading').hidden = false
try {
  user = await refresh()
  showUser()
  restoreTyped()
  showData(user)
  await showAll().catch((error) => {
    if (error.code !== 'SECOND_FACTOR_MISSING') throw error
    showRest(false)
    return requireFactor(showAll)
  })
  find('#account').hidden = false
  showWhere()
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView()
  explainReturn()
} catch (error) {
  if (error.status === UNAUTHORIZED) await leave()
  if (!(error instanceof Failure)) console.error(error)
  find('#retry').hidden = false
  announce(find('#failure'), error instanceof Failure ? error.message : texts.failed)
} finally {
  find('#loading').hidden = true
}

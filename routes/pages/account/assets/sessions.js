import { logOut, openPage } from './account.js'
import { describeUserAgent } from './functions.js'
import { ago, format, onUse, texts } from './page.js'
import { call, confirm } from './session.js'

const find = (selector) => document.querySelector(selector)
const times = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })
const ACTIVE_MS = 5 * 60_000

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
  find('#title').focus()
}

onUse(find('#end-others'), 'click', find('#sessions-alert'), async () => {
  find('#sessions-status').textContent = ''
  await confirm(texts.endOthersConfirm, find('#end-others').textContent)
  await call('DELETE', 'auth/sessions')
  await showSessions()
  find('#sessions-status').textContent = texts.othersEnded
  find('#title').focus()
})
onUse(find('#log-out-everywhere'), 'click', find('#sessions-alert'), async () => {
  await confirm(texts.logOutEverywhereConfirm, find('#log-out-everywhere').textContent)
  await call('DELETE', 'auth/sessions')
  await logOut()
})

await openPage(showSessions)

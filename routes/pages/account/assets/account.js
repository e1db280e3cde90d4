// What the pages of an account have in common: who is logged in, and what happens when a page opens.
import { announce, Failure, onUse, pageUrl, showRunning, texts } from './page.js'
import { call, leave, refresh } from './session.js'

const UNAUTHORIZED = 401
const find = (selector) => document.querySelector(selector)
const HOME = pageUrl('account')

export async function logOut () {
  await call('POST', 'auth/logout')
  await leave('?out')
}

/** Shows a user at the top of the page. */
export function showWho ({ name, email, role }) {
  find('#avatar').textContent = initialsOf(name)
  find('#who-name').textContent = name
  find('#who-email').textContent = email ?? ''
  find('#log-out').hidden = false
  const toConsole = find('#to-console')
  if (toConsole) toConsole.hidden = role !== 'admin'
  for (const field of document.querySelectorAll('[data-username]')) field.value = email ?? ''
}

// Of the first and the last word. A character may be a pair of surrogates.
function initialsOf (name) {
  const words = name.trim().split(/\s+/)
  const letters = [words[0], ...words.length > 1 ? [words[words.length - 1]] : []].map((word) => Array.from(word)[0] ?? '')
  return letters.join('').toLocaleUpperCase(document.documentElement.lang)
}

/**
 * Opens a page of the account: finds out who is logged in, and lets the page show what it has. Leads to the login if
 * nobody is, and to the ways to log in if a second factor is missing.
 */
export async function openPage (show) {
  const isSecurity = location.pathname === new URL(pageUrl('account/security')).pathname
  onUse(find('#log-out'), 'click', find('#failure'), logOut)
  // A browser may show the page from its memory after the user has logged out.
  addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload() })
  showCurrent()
  addEventListener('resize', showCurrent)
  showRunning()
  find('#loading').hidden = false
  try {
    const user = await refresh()
    showWho(user)
    // Whoever must have a second factor has nothing else to see until then, which only the service knows.
    await Promise.all([show(user), isSecurity || call('GET', 'protected')])
    find('#account').hidden = false
  } catch (error) {
    if (error.status === UNAUTHORIZED) await leave(new URL(HOME).pathname === location.pathname ? '' : `?${here()}`)
    if (error.code === 'SECOND_FACTOR_MISSING') {
      location.replace(pageUrl('account/security'))
      return
    }
    if (!(error instanceof Failure)) console.error(error)
    find('#retry').hidden = false
    announce(find('#failure'), error instanceof Failure ? error.message : texts.failed)
  } finally {
    find('#loading').hidden = true
  }
}

// On phones, the current part may be beyond the edge.
function showCurrent () {
  const list = find('.tabs ul')
  const [whole, current] = [list, find('.tabs [aria-current]')].map((element) => element.getBoundingClientRect())
  // In either direction of writing.
  list.scrollLeft += current.left + current.width / 2 - (whole.left + whole.width / 2)
}

const here = () => new URLSearchParams({ returnTo: location.pathname })

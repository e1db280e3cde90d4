// The pages to which mails link. The token is in the fragment of the address, which browsers send neither to servers
// nor as a referrer, so no log contains it.
import { Failure, onSubmit, request, send } from './page.js'
import { recallUsername } from './username.js'

const INVALID = 400
const NOT_FOUND = 404
const form = document.querySelector('form')
const storageKey = `usher-token ${location.pathname}`
const username = form.querySelector('[data-username]')
if (username) username.value = recallUsername()

// The address bar must not keep the token, because browsers synchronize their histories and open tabs, and people copy
// addresses. The storage of the tab keeps it until it is used, so that the page can be reloaded. Some browsers forbid
// the storage.
function takeToken () {
  const given = new URLSearchParams(location.hash.slice(1)).get('token')
  if (given === null) return read()
  history.replaceState(null, '', location.pathname + location.search)
  try {
    sessionStorage.setItem(storageKey, given)
  } catch {}
  return given
}

function read () {
  try {
    return sessionStorage.getItem(storageKey)
  } catch {
    return null
  }
}

function forget () {
  try {
    sessionStorage.removeItem(storageKey)
  } catch {}
}

function show (state) {
  for (const element of document.querySelectorAll('[data-state]')) element.hidden = element.dataset.state !== state
}

// A sign-up that was not sent by this browser needs a password.
function askForPassword (isNeeded) {
  const fields = form.querySelector('[data-foreign]')
  if (!fields) return
  fields.hidden = fields.disabled = !isNeeded
  form.querySelector('[data-own]').hidden = isNeeded
}

// Nothing is done before the user presses a button, because programs that scan mails open the links in them.
async function open (token) {
  if (!token) return show('missing')
  try {
    const { headers } = await request('POST', form.dataset.check, { token })
    askForPassword(headers.get('Password-Required') === 'true')
  } catch (error) {
    if (error instanceof Failure && error.status === INVALID) {
      forget()
      return show('invalid')
    }
    // The service cannot check this kind of token, or not now. It will when the token is used.
    if (!(error instanceof Failure)) throw error
    if (error.status !== NOT_FOUND) form.querySelector('[role=alert]').textContent = error.message
  }
  show('form')
  form.querySelector('input[name]:enabled, button').focus()
}

const token = takeToken()
// Opening another link of the same kind in this tab only changes the fragment.
addEventListener('hashchange', () => location.reload())

onSubmit(form, async (values) => {
  try {
    await send('POST', form.dataset.action, { token, ...values })
  } catch (error) {
    // The browser has lost its cookie since the page was opened.
    if (error.code === 'PASSWORD_REQUIRED') askForPassword(true)
    if (!(error instanceof Failure) || error.status !== INVALID || await isValid()) throw error
    forget()
    return show('invalid')
  }
  forget()
  show('done')
  document.querySelector('[data-state=done] .status').focus()
})

// The input may be at fault instead of the token.
async function isValid () {
  return send('POST', form.dataset.check, { token }).then(() => true, ({ status }) =>
    status !== INVALID && (status !== NOT_FOUND || form.querySelector('input:enabled') !== null))
}

await open(token)

// The pages to which mails link, apart from that for logins.
import { forgetToken, showState, takeToken } from './mail-token.js'
import { Failure, onSubmit, request, send, showRunning } from './page.js'
import { recallUsername } from './username.js'

const INVALID = 400
const NOT_FOUND = 404
const form = document.querySelector('form')
const username = form.querySelector('[data-username]')
if (username) username.value = recallUsername()

// A sign-up that was not sent by this browser needs a password, and so does an address that nobody has proved, without
// a session of its user.
function askForPassword (isNeeded) {
  const fields = form.querySelector('[data-foreign]')
  if (!fields) return
  fields.hidden = fields.disabled = !isNeeded
  const own = form.querySelector('[data-own]')
  if (own) own.hidden = isNeeded
}

// The link changes the address of an account that has an owner, who must be logged in.
function askForLogin () {
  form.querySelector('[data-login]').hidden = false
  form.querySelector('[data-submit]').hidden = true
}

// What a reset removes. Its owner may keep what is named, unless nobody has confirmed the address before.
function showWays ({ removes = [], mayKeep }) {
  const ways = form.querySelector('[data-ways]')
  if (!ways || removes.length === 0) return
  const days = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium' })
  const label = { passkey: 'passkey', totp: 'totp', identity: 'identity', 'api-key': 'apiKey' }
  ways.querySelector('[data-list]').replaceChildren(...removes.map(({ id, kind, name, addedAt }) => {
    const item = document.createElement('li')
    const what = [ways.dataset[label[kind]], name].filter(Boolean).join(': ')
    const text = `${what} (${days.format(new Date(addedAt))})`
    // Programs get new keys after a reset.
    if (!mayKeep || kind === 'api-key') {
      item.textContent = text
      return item
    }
    const box = Object.assign(document.createElement('input'), { type: 'checkbox', value: id, autocomplete: 'off' })
    box.dataset.keep = ''
    const field = Object.assign(document.createElement('label'), { className: 'check' })
    field.append(box, ` ${text}`)
    item.append(field)
    return item
  }))
  ways.querySelector(mayKeep ? '[data-keeps]' : '[data-removes]').hidden = false
  ways.hidden = false
}

// Nothing is done before the user presses a button, because programs that scan mails open the links in them.
async function open (token) {
  if (!token) return showState('missing')
  try {
    const { data, headers } = await request('POST', form.dataset.check, { token })
    askForPassword(headers.get('Password-Required') === 'true')
    if (headers.get('Login-Required') === 'true') askForLogin()
    showWays(data)
  } catch (error) {
    if (error instanceof Failure && error.status === INVALID) {
      forgetToken()
      return showState('invalid')
    }
    // The service cannot check this kind of token, or not now. It will when the token is used.
    if (!(error instanceof Failure)) throw error
    if (error.status !== NOT_FOUND) form.querySelector('[role=alert]').textContent = error.message
  }
  showState('form')
  form.querySelector('input[name]:enabled, button').focus()
}

const token = takeToken()

onSubmit(form, async (values) => {
  try {
    const keep = [...form.querySelectorAll('[data-keep]:checked')].map(({ value }) => value)
    await send('POST', form.dataset.action, { token, ...values, ...keep.length > 0 && { keep } })
  } catch (error) {
    // The browser has lost its cookie since the page was opened.
    if (error.code === 'PASSWORD_REQUIRED') askForPassword(true)
    if (error.code === 'LOGIN_REQUIRED') askForLogin()
    if (!(error instanceof Failure) || error.status !== INVALID || await isValid()) throw error
    forgetToken()
    return showState('invalid')
  }
  forgetToken()
  showState('done')
  document.querySelector('[data-state=done] .status').focus()
})

// The input may be at fault instead of the token.
async function isValid () {
  return send('POST', form.dataset.check, { token }).then(() => true, ({ status }) =>
    status !== INVALID && (status !== NOT_FOUND || form.querySelector('input:enabled') !== null))
}

showRunning()
await open(token)

// The pages to which mails link, apart from that for logins.
import { forgetToken, showState, takeToken } from './mail-token.js'
import { Failure, onSubmit, request, send, showRunning } from './page.js'
import { keepLogin } from './pending-login.js'
import { showStrength } from './strength.js'
import { recallUsername } from './username.js'

const INVALID = 400
const NOT_FOUND = 404
const form = document.querySelector('form')
const username = form.querySelector('[data-username]')
if (username) username.value = recallUsername()
const isReset = form.dataset.action === 'auth/password-reset/confirm'
const isSignUp = form.dataset.action === 'auth/sign-up/confirm'

// Whose account it is, as the service says to whoever has the link.
let account = ''

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

function showAccount ({ email = '', isInvitation = false, invitedBy = null }) {
  account = email
  const place = form.querySelector('[data-account]')
  if (place && email) {
    place.querySelector('bdi').textContent = email
    place.hidden = false
  }
  if (username && email) username.value = email
  const invitation = form.querySelector('[data-invitation]')
  if (!invitation || !isInvitation) return
  const heading = document.querySelector('h1')
  const { title, by } = invitation.dataset
  document.title = document.title.replace(heading.dataset.title, () => title)
  heading.textContent = title
  if (invitedBy) invitation.querySelector('[data-inviter]').textContent = by.replace('{name}', () => invitedBy)
  invitation.hidden = false
  for (const element of form.querySelectorAll('[data-reset]')) element.hidden = true
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
    showAccount(data)
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

// A session of the user whose password or account this is. Returns where the browser goes, or undefined if the user has
// to log in: the reason is told there.
async function logIn (values, reply) {
  const { next, login } = form.dataset
  try {
    // The answer to a confirmation has set the cookie, unless the service did not let the new user in.
    if (isSignUp) return (await send('POST', 'auth/refresh')).user.id === reply.id ? next : undefined
    if (!isReset || !account) return undefined
    await send('POST', 'auth/login', { email: account, password: values.password })
    return next
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    if (error.code !== 'SECOND_FACTOR_REQUIRED') return undefined
    keepLogin({ ...error.data, account })
    return login
  }
}

const token = takeToken()

onSubmit(form, async (values) => {
  let reply
  try {
    const keep = [...form.querySelectorAll('[data-keep]:checked')].map(({ value }) => value)
    reply = await send('POST', form.dataset.action, {
      token, ...values, ...keep.length > 0 && { keep }, ...isSignUp && { logIn: true },
    })
  } catch (error) {
    // The browser has lost its cookie since the page was opened.
    if (error.code === 'PASSWORD_REQUIRED') askForPassword(true)
    if (error.code === 'LOGIN_REQUIRED') askForLogin()
    if (!(error instanceof Failure) || error.status !== INVALID || await isValid()) throw error
    forgetToken()
    return showState('invalid')
  }
  forgetToken()
  const next = await logIn(values, reply)
  if (next !== undefined) {
    location.assign(next)
    return new Promise(() => {})
  }
  showState('done')
  document.querySelector('[data-state=done] .status').focus()
})

// The input may be at fault instead of the token.
async function isValid () {
  return send('POST', form.dataset.check, { token }).then(() => true, ({ status }) =>
    status !== INVALID && (status !== NOT_FOUND || form.querySelector('input:enabled') !== null))
}

showRunning()
showStrength(() => [form.elements.name?.value ?? '', account])
await open(token)

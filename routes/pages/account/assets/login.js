import { forgetToken, showState, takeToken } from './mail-token.js'
import { announce, Failure, format, onSubmit, onUse, send, showRunning, texts } from './page.js'
import { isConditional, isSupported, usePasskey } from './passkeys.js'
import { offerAgain } from './send-again.js'
import { takeLogin } from './pending-login.js'
import { recallUsername, rememberUsername } from './username.js'

const INVALID = 400
const UNAUTHORIZED = 401
// The options of a ceremony are good for five minutes.
const CONDITIONAL_MS = 4 * 60 * 1000
const find = (selector) => document.querySelector(selector)
const passwordForm = find('#password-form')
const status = find('[role=status]')
const alert = find('#alert')
const passkey = find('#passkey')
const secondPasskey = find('#second-passkey')

// What ends the ceremony that waits in the field for the address, because a browser runs one at a time.
let offered

// The server has checked this address.
const leave = () => location.assign(passwordForm.dataset.returnTo)

const fieldOf = { first: '#email', second: '#code', mail: '#mail-email', 'mail-code': '#mail-code' }
const isShown = (name) => find(`[data-step=${name}]`)?.hidden === false

const heading = find('h1')
const firstTitle = [heading.textContent, document.title]

function showStep (name) {
  for (const step of document.querySelectorAll('[data-step]')) step.hidden = step.dataset.step !== name
  const { title } = find(`[data-step=${name}]`).dataset
  heading.textContent = title ?? firstTitle[0]
  document.title = title === undefined ? firstTitle[1] : firstTitle[1].replace(heading.dataset.title, () => title)
  find(fieldOf[name]).focus()
}

function askForSecondFactor ({ challenge, methods = [] }, account) {
  offered?.abort()
  const place = find('[data-account]')
  place.querySelector('bdi').textContent = account
  place.hidden = !account
  for (const field of document.querySelectorAll('[name=challenge]')) field.value = challenge
  find('#recovery').hidden = !methods.includes('recovery-code')
  if (secondPasskey) secondPasskey.hidden = !isSupported || !methods.includes('passkey')
  status.textContent = ''
  showStep('second')
}

/** Sends the second factor. If the challenge is void, the login starts again. */
async function sendSecondFactor (body) {
  try {
    await send('POST', 'auth/login/second-factor', body)
  } catch (error) {
    if (error.code !== 'INVALID_CHALLENGE') throw error
    for (const form of document.querySelectorAll('form')) if (form !== passwordForm) form.reset()
    find('#password').value = ''
    alert.textContent = error.message
    showStep('first')
    offerPasskeys()
    return
  }
  leave()
}

/** Runs a ceremony with new options. Returns the response, or `undefined` if there is none. */
async function ask (given) {
  return usePasskey(await send('POST', 'auth/login/passkey/options'), given)
}

async function logInByPasskey (credential) {
  await send('POST', 'auth/login/passkey', { credential }).catch(explainPasskey)
  leave()
}

// The codes are those of a wrong password and a wrong code, whose texts would mislead.
function explainPasskey (error) {
  throw error.status === UNAUTHORIZED ? new Failure(texts.passkeyRejected, UNAUTHORIZED) : error
}

/** Lets the browser offer passkeys in the field for the address, until one is used. */
async function offerPasskeys () {
  if (!passkey || !await isConditional()) return
  offered?.abort()
  const { signal } = offered = new AbortController()
  const timer = setTimeout(offerPasskeys, CONDITIONAL_MS)
  signal.addEventListener('abort', () => clearTimeout(timer))
  try {
    const credential = await ask({ mediation: 'conditional', signal })
    if (credential && !signal.aborted) await logInByPasskey(credential)
  } catch (error) {
    if (signal.aborted) return
    // Nobody has asked for it, so only what follows the choice of a passkey is worth a word.
    if (error.status === UNAUTHORIZED) alert.textContent = error.message
  }
}

/** Sends the first factor, and asks for the second one if there is one. */
async function logIn (path, body, account = '') {
  try {
    await send('POST', path, body)
  } catch (error) {
    if (error.code !== 'SECOND_FACTOR_REQUIRED') throw error
    return askForSecondFactor(error.data, account)
  }
  leave()
}

onSubmit(passwordForm, ({ email, password }) => logIn('auth/login', { email, password }, email))

onSubmit(find('#code-form'), ({ challenge, code }) => sendSecondFactor({ challenge, code }))
onSubmit(find('#recovery-form'), ({ challenge, recoveryCode }) => sendSecondFactor({ challenge, recoveryCode }))

if (passkey && isSupported) {
  passkey.hidden = find('#ways').hidden = false
  onUse(passkey, 'click', alert, async () => {
    status.textContent = ''
    offered?.abort()
    const credential = await ask()
    if (credential) return logInByPasskey(credential)
    announce(status, texts.passkeyUnused)
    offerPasskeys()
  })
  const isFirst = !find('[data-step=first]').hidden
  if (isFirst) offerPasskeys()
  if (!isFirst) secondPasskey.hidden = !secondPasskey.dataset.methods.includes('passkey')
  onUse(secondPasskey, 'click', find('#code-alert'), async () => {
    const credential = await ask()
    if (!credential) return announce(status, texts.passkeyUnusedCode)
    await sendSecondFactor({ challenge: find('[name=challenge]').value, passkey: credential }).catch(explainPasskey)
  })
}

showRunning()
// A password was set by a link of a mail, and a second factor is missing.
const begun = find('[data-step=first]').hidden ? null : takeLogin()
if (begun) askForSecondFactor(begun, begun.account)
const whoIsHere = showWhoIsHere()

// A visitor who has a session may go on with it. Only the service sees its cookie.
async function showWhoIsHere () {
  if (find('[data-step=first]').hidden) return
  try {
    const { isSent } = await send('GET', 'auth/pages/session')
    if (!isSent) return
    const { user } = await send('POST', 'auth/refresh')
    // What the user wants to do needs another login, so there is nothing to go on with.
    if (new URLSearchParams(location.search).has('confirm')) {
      find('#email').value ||= user.email ?? ''
      return
    }
    const place = find('#logged-in')
    find('#logged-in-as').textContent = format(texts.loggedInAs, { name: user.email ? `${user.name} (${user.email})` : user.name })
    place.hidden = false
    onUse(find('#log-out'), 'click', alert, async () => {
      await send('POST', 'auth/logout')
      place.hidden = true
      find('#email').focus()
    })
  } catch (error) {
    // The session has ended, or the login will say what is wrong.
    if (!(error instanceof Failure)) throw error
  }
}

find('#by-mail')?.addEventListener('click', () => rememberUsername(find('#email').value))

// Missing on the page that begins with the password.
const mailForm = find('#mail-form')
const SENT = 'sent'

if (mailForm) {
  find('#mail-email').value ||= recallUsername()
  onSubmit(mailForm, async ({ email }) => {
    await send('POST', 'auth/login/mail', { email })
    rememberUsername(email)
    // On phones, the browser may load the page anew after the user has read the mail.
    const url = new URL(location.href)
    url.searchParams.set(SENT, '')
    history.replaceState(null, '', url)
    showSent(email)
    showStep('mail-code')
  })
  // The cookie of this browser says to which mail the code belongs.
  onSubmit(find('#mail-code-form'), ({ code }) => logIn('auth/login/mail/confirm', { code }))
  if (isShown('mail') && new URLSearchParams(location.search).has(SENT)) {
    showSent(recallUsername())
    showStep('mail-code')
  }
  if (isShown('mail-link')) await openMailLink(takeToken())
}
await whoIsHere

function showSent (email) {
  if (!email) return
  find('#mail-sent').textContent = format(find('#mail-sent').dataset.sent, { email })
  offerAgain(find('#send-again'), find('#mail-again-status'), () => send('POST', 'auth/login/mail', { email }))
}

// Nothing is used up before the user presses the button, because programs that scan mails open the links in them.
async function openMailLink (token) {
  if (!token) return showState('missing')
  const reject = (error) => {
    if (error.status !== INVALID) throw error
    forgetToken()
    showState('invalid')
  }
  onSubmit(find('#mail-link-form'), async () => {
    await logIn('auth/login/mail/confirm', { token }).catch(reject)
    forgetToken()
  })
  try {
    const { email, requestedHere, removes } = await send('POST', 'auth/login/mail/check', { token })
    find('#mail-account').textContent = email
    find('#mail-elsewhere').hidden = requestedHere
    find('#mail-removes').hidden = !removes
    showState('form')
    find('#mail-link-form button').focus()
  } catch (error) {
    if (error instanceof Failure && error.status === INVALID) return reject(error)
    // It can be tried again by loading the page anew.
    announce(status, error instanceof Failure ? error.message : texts.failed)
  }
}

import { announce, Failure, onSubmit, onUse, send, texts } from './page.js'
import { isConditional, isSupported, usePasskey } from './passkeys.js'

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

function showStep (name) {
  for (const step of document.querySelectorAll('[data-step]')) step.hidden = step.dataset.step !== name
  find(name === 'second' ? '#code' : '#email').focus()
}

function askForSecondFactor ({ challenge, methods = [] }) {
  offered?.abort()
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

onSubmit(passwordForm, async ({ email, password }) => {
  try {
    await send('POST', 'auth/login', { email, password })
  } catch (error) {
    if (error.code !== 'SECOND_FACTOR_REQUIRED') throw error
    return askForSecondFactor(error.data)
  }
  leave()
})

onSubmit(find('#code-form'), ({ challenge, code }) => sendSecondFactor({ challenge, code }))
onSubmit(find('#recovery-form'), ({ challenge, recoveryCode }) => sendSecondFactor({ challenge, recoveryCode }))

if (passkey && isSupported) {
  passkey.hidden = false
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

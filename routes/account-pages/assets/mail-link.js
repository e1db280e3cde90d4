// The pages to which mails link, apart from that for logins.
import { forgetToken, showState, takeToken } from './mail-token.js'
import { Failure, onSubmit, request, send } from './page.js'
import { recallUsername } from './username.js'

const INVALID = 400
const NOT_FOUND = 404
const form = document.querySelector('form')
const username = form.querySelector('[data-username]')
if (username) username.value = recallUsername()

// A sign-up that was not sent by this browser needs a password.
function askForPassword (isNeeded) {
  const fields = form.querySelector('[data-foreign]')
  if (!fields) return
  fields.hidden = fields.disabled = !isNeeded
  form.querySelector('[data-own]').hidden = isNeeded
}

// Nothing is done before the user presses a button, because programs that scan mails open the links in them.
async function open (token) {
  if (!token) return showState('missing')
  try {
    const { headers } = await request('POST', form.dataset.check, { token })
    askForPassword(headers.get('Password-Required') === 'true')
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
    await send('POST', form.dataset.action, { token, ...values })
  } catch (error) {
    // The browser has lost its cookie since the page was opened.
    if (error.code === 'PASSWORD_REQUIRED') askForPassword(true)
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

await open(token)

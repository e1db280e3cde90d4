// The page of an invitation to an organisation. What it asks for depends on who opens it.
import { forgetToken, showState, takeToken } from './mail-token.js'
import { Failure, failureText, format, onSubmit, onUse, pageUrl, send, showRunning, texts } from './page.js'
import { roleName } from './role-name.js'
import { showStrength } from './strength.js'
import { rememberUsername } from './username.js'

const INVALID = 400
const UNAUTHORIZED = 401
const find = (selector) => document.querySelector(selector)
const form = find('form')
const alert = find('#alert')
const token = takeToken()

let invitation
let shown

// Returns the user who is logged in with a token, if anybody is. Only the service sees the cookie of the session.
async function readVisitor () {
  const { isSent } = await send('GET', 'auth/pages/session')
  if (!isSent) return undefined
  return send('POST', 'auth/refresh').catch((error) => error.status === UNAUTHORIZED ? undefined : Promise.reject(error))
}

function kindOf (visitor) {
  if (!visitor) return invitation.hasAccount ? 'account' : 'newcomer'
  const { email } = visitor.user
  // Of who may not see the own address, the service knows it.
  return email === undefined || email.toLowerCase() === invitation.email.toLowerCase() ? 'own' : 'other'
}

// Shows what the visitor needs to accept the invitation.
function show (visitor) {
  shown = kindOf(visitor)
  for (const part of form.querySelectorAll('[data-visitor]')) {
    part.hidden = !part.dataset.visitor.split(' ').includes(shown)
    if (part.tagName === 'FIELDSET') part.disabled = part.hidden
  }
  if (visitor) {
    const { name, email = '' } = visitor.user
    find('#joins-as').textContent = format(texts.loggedInAs, { name })
    find('#is-other').textContent = format(texts.joinOther, { account: email, email: invitation.email })
  }
  const usable = [...form.querySelectorAll('input[name]:enabled, button, a')].find(({ offsetParent }) => offsetParent !== null)
  usable?.focus()
}

function showInvitation () {
  const { organization, invitedBy, email, role } = invitation
  find('#inviter').textContent = invitedBy === null
    ? format(texts.joinInvited, { organization: organization.name })
    : format(texts.joinInvitedBy, { name: invitedBy, organization: organization.name })
  find('#invited-email').textContent = email
  find('#invited-role').textContent = roleName(role)
  find('[data-username]').value = email
  find('#invitation').hidden = false
}

function reject () {
  forgetToken()
  showState('invalid')
}

// Nothing is used up before a button is pressed, because programs that scan mails open the links in them.
async function open () {
  if (!token) return showState('missing')
  try {
    invitation = await send('POST', form.dataset.check, { token })
    const visitor = await readVisitor()
    showInvitation()
    showState('form')
    show(visitor)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    if (error.status === INVALID) return reject()
    // It can be tried again by loading the page anew.
    showState('form')
    alert.textContent = error.message
  }
}

// The input may be at fault instead of the token.
const isValid = () => send('POST', form.dataset.check, { token }).then(() => true, ({ status }) => status !== INVALID)

// The page that follows needs a session, which the new user does not get in every service.
const logIn = (password) => send('POST', 'auth/login', { email: invitation.email, password }).then(() => true, (error) =>
  error instanceof Failure ? false : Promise.reject(error))

onSubmit(form, async ({ name, password }) => {
  const visitor = await readVisitor()
  // Another page may have logged somebody in or out.
  if (kindOf(visitor) !== shown) return show(visitor)
  try {
    await send('POST', form.dataset.action, { token, name, password: password || undefined }, visitor?.token)
  } catch (error) {
    // An account has got the address since the page was opened.
    if (error.code === 'LOGIN_REQUIRED') {
      invitation.hasAccount = true
      show(undefined)
    }
    if (error.status !== INVALID || await isValid()) throw error
    return reject()
  }
  forgetToken()
  if (visitor || (password && await logIn(password))) {
    location.assign(form.dataset.next)
    return new Promise(() => {})
  }
  if (!password) {
    // The page to log in by mail then knows the address.
    rememberUsername(invitation.email)
    find('[data-state=done] a').href = find('fieldset').dataset.byMail
  }
  showState('done')
  find('[data-state=done] .status').focus()
})

onUse(find('#log-out'), 'click', alert, async () => {
  await send('POST', 'auth/logout')
  show(undefined)
})

// A provider proves the address in place of a password. Its answer leads back to this page if it is of no use.
for (const link of form.querySelectorAll('.providers a')) {
  const [, provider] = /providers\/([^/]+)\/start/.exec(link.pathname)
  onUse(link, 'click', alert, async () => {
    const { url } = await send('POST', `auth/providers/${provider}/join`, { token })
    location.assign(url)
    return new Promise(() => {})
  })
}

find('#log-in').href = pageUrl(`login?${new URLSearchParams({ returnTo: location.pathname })}`)
const failure = new URL(location.href).searchParams.get('error')
if (failure !== null) {
  history.replaceState(null, '', location.pathname)
  alert.textContent = failureText(failure)
}
showRunning()
showStrength(() => [form.elements.name.value, invitation.email])
await open()

// The session of the pages of an account: its token, requests, and the dialog that authenticates the user once more.
import { Cancelled, Failure, onSubmit, onUse, pageUrl, request, send, texts } from './page.js'
import { isSupported, usePasskey } from './passkeys.js'

const UNAUTHORIZED = 401
const find = (selector) => document.querySelector(selector)
const dialog = find('#step-up')

// Only in memory, where it is lost with the page.
let token

/** Gets another token by the cookie of the session, which no script can read. Returns the user. */
export async function refresh () {
  const reply = await send('POST', 'auth/refresh')
  token = reply.token
  return reply.user
}

/** Takes a token of the same session that says more about its user. */
export function setToken (given) {
  token = given
}

// What was typed into fields that may be kept, until the user has logged in again in this tab.
const TYPED = 'usher-typed'

function keepTyped () {
  const typed = Array.from(document.querySelectorAll('[data-kept]'))
    .filter(({ value, dataset, type }) => type !== 'checkbox' && value !== dataset.kept).map(({ id, value }) => [id, value])
  try {
    if (typed.length > 0) sessionStorage.setItem(TYPED, JSON.stringify([find('#profile').dataset.user, typed]))
  } catch {}
}

/** Returns the names and values of what was typed when the session ended, once, and only to the same user. */
export function takeTyped (userId) {
  try {
    const [owner, typed] = JSON.parse(sessionStorage.getItem(TYPED) ?? '[]')
    sessionStorage.removeItem(TYPED)
    return owner === userId ? typed : []
  } catch {
    return []
  }
}

/** Opens the login after the session has ended, which leads back here. Never resolves. */
function leaveEnded () {
  keepTyped()
  return leave(`?ended&${new URLSearchParams({ returnTo: location.pathname + location.hash })}`)
}

/** Opens the login. Never resolves, because another page is loading. */
export function leave (query = '') {
  location.replace(pageUrl(`login${query}`))
  return new Promise(() => {})
}

/**
 * Sends a request of the user. If the token has expired, gets another one and tries once more. If the user must be
 * authenticated once more, asks for that and tries again. Throws `Failure`, and `Cancelled` if the user refuses.
 */
export async function call (method, path, body, headers) {
  try {
    return await callOnce(method, path, body, headers)
  } catch (error) {
    if (error.code !== 'STEP_UP_REQUIRED') throw error
  }
  await stepUp()
  return callOnce(method, path, body, headers)
}

/** Reads a page of a list. Returns its rows, and the cursor of the next page or undefined. Throws `Failure`. */
export async function readPage (path) {
  const { data, headers } = await requestOnce('GET', path)
  return { rows: data, next: /[?&]after=([\w-]+)[^>]*>; rel="next"/.exec(headers.get('link') ?? '')?.[1] }
}

const callOnce = async (method, path, body, headers) => (await requestOnce(method, path, body, headers)).data

async function requestOnce (method, path, body, headers) {
  try {
    return await request(method, path, body, token, headers)
  } catch (error) {
    if (error.code !== 'INVALID_TOKEN') throw error
  }
  await refresh().catch((error) => error.status === UNAUTHORIZED ? leaveEnded() : Promise.reject(error))
  return request(method, path, body, token, headers)
}

let settle

/**
 * Authenticates the user once more, in a dialog. Throws `Failure`, and `Cancelled` if the user closes the dialog.
 * @param isFactorNeeded whether the password does not suffice
 */
export async function stepUp ({ isFactorNeeded = false } = {}) {
  const { totp, passkeys, password, mail, providers } = await callOnce('GET', 'auth/second-factor')
  const canUsePasskey = isSupported && passkeys > 0
  const isShown = {
    code: totp !== null,
    password: totp === null && !isFactorNeeded && password,
    mail: totp === null && !isFactorNeeded && mail,
  }
  isShown.none = !canUsePasskey && !Object.values(isShown).includes(true)
  for (const element of dialog.querySelectorAll('[data-factor]')) element.hidden = !isShown[element.dataset.factor]
  showMailForm(false)
  for (const form of dialog.querySelectorAll('form')) {
    form.reset()
    form.querySelector('[role=alert]').textContent = ''
  }
  find('#step-up-passkey').hidden = !canUsePasskey
  find('#step-up-alert').textContent = ''
  // With a second factor, a provider does not suffice.
  await offerProviders(totp === null && !isFactorNeeded ? providers : [])
  return new Promise((resolve, reject) => {
    settle = (isDone) => isDone ? resolve() : reject(new Cancelled())
    dialog.showModal()
    dialog.querySelector(':not([hidden])').focus()
  })
}

async function offerProviders (ids) {
  const place = find('#step-up-providers')
  if (!place) return
  const providers = ids.length > 0 ? await callOnce('GET', 'auth/providers') : []
  place.replaceChildren(...providers.filter(({ id }) => ids.includes(id)).map(({ id, name }) => {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'plain'
    button.textContent = texts.stepUpWith.replace('{provider}', () => name)
    onUse(button, 'click', find('#step-up-alert'), async () => {
      const { url } = await callOnce('POST', `auth/providers/${id}/step-up`, { returnTo: location.pathname })
      location.assign(url)
    })
    return button
  }))
}

async function prove (proof) {
  const reply = await callOnce('POST', 'auth/step-up', proof)
  token = reply.token
  const done = settle
  settle = undefined
  dialog.close()
  done?.(true)
}

// Also by Escape.
dialog.addEventListener('close', () => settle?.(false))
onUse(find('#step-up-cancel'), 'click', find('#step-up-alert'), async () => dialog.close())
onSubmit(find('#step-up-password-form'), ({ password }) => prove({ password }))
onSubmit(find('#step-up-code-form'), ({ code }) => prove({ code }))
onSubmit(find('#step-up-recovery-form'), ({ recoveryCode }) => prove({ recoveryCode }))
// What the code of the mail belongs to.
let mailId

function showMailForm (isSent) {
  if (!find('#step-up-mail')) return
  find('#step-up-mail-form').hidden = !isSent
  find('#step-up-mail').hidden = isSent
  find('#step-up-mail-alert').textContent = ''
}

if (find('#step-up-mail')) {
  onUse(find('#step-up-mail'), 'click', find('#step-up-mail-alert'), async () => {
    mailId = (await callOnce('POST', 'auth/step-up/mail')).id
    showMailForm(true)
    find('#step-up-mail-code').focus()
  })
  onSubmit(find('#step-up-mail-form'), ({ code }) => prove({ mail: { id: mailId, code } }))
}
onUse(find('#step-up-passkey'), 'click', find('#step-up-alert'), async () => {
  const credential = await usePasskey(await callOnce('POST', 'auth/step-up/options'))
  // Who has abandoned it can still use another way, or cancel.
  if (!credential) return
  await prove({ credential }).catch((error) => {
    throw error.code === 'WRONG_SECOND_FACTOR' ? new Failure(texts.passkeyRejected) : error
  })
})

const confirmation = find('#confirmation')

/**
 * Asks whether something that cannot be undone shall be done, and with `option` also what that says. Returns whether
 * the option was chosen. Throws `Cancelled` if nothing shall be done.
 */
export function confirm (question, label, option = '') {
  const box = find('#confirmation-option')
  box.hidden = option === ''
  box.querySelector('span').textContent = option
  box.querySelector('input').checked = false
  find('#confirmation-question').textContent = question
  find('#confirmation-yes').textContent = label
  confirmation.returnValue = ''
  confirmation.showModal()
  return new Promise((resolve, reject) => {
    confirmation.addEventListener('close', () => {
      if (confirmation.returnValue === 'yes') resolve(box.querySelector('input').checked)
      else reject(new Cancelled())
    }, { once: true })
  })
}

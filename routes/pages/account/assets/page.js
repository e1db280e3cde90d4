// What the scripts of all pages use. Texts from users and from the service are set as `textContent` and as values of
// fields only.
import { formatText, inputText, toSentence } from './functions.js'
import { failures, texts } from './texts.js'

export { texts }

const { lang } = document.documentElement
const relative = new Intl.RelativeTimeFormat(lang, { numeric: 'auto' })
const MINUTE_S = 60
const UNITS = [['day', 86_400], ['hour', 3_600], ['minute', MINUTE_S]]

/** Returns a text with its placeholders replaced by values. */
export const format = (text, values) => formatText(text, values, lang)

/** Returns an instant in words, such as `2 hours ago`. */
export function ago (instant) {
  const seconds = (new Date(instant) - Date.now()) / 1000
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1)
  return relative.format(Math.trunc(seconds / size), unit)
}

const root = new URL('../../', import.meta.url)
const textsOfFailures = new Map(Object.entries(failures))
const TIMEOUT_MS = 30_000
const TOO_MANY = 429

/** A failure with a sentence for the user. */
export class Failure extends Error {
  constructor (message, status, data = {}) {
    super(message)
    this.status = status
    this.code = data.code
    this.data = data
  }
}

/** The user has cancelled an action, which therefore says nothing. */
export class Cancelled extends Error {}

/** Removes the sentence that the page shows unless its scripts run. */
export const showRunning = () => document.querySelector('#scripts-missing')?.remove()

/** Returns the address of a page. */
export const pageUrl = (path) => new URL(path, root).href

/** Sends a request to the API. Returns the body of the response. Throws `Failure`. */
export async function send (method, path, body, token) {
  return (await request(method, path, body, token)).data
}

/** Sends a request to the API. Returns the body and the headers of the response. Throws `Failure`. */
export async function request (method, path, body, token, more = {}) {
  const headers = {
    ...more,
    ...body && { 'content-type': 'application/json' },
    ...token && { authorization: `Bearer ${token}` },
  }
  let response
  let data = {}
  const aborter = new AbortController()
  const timer = setTimeout(() => aborter.abort(), TIMEOUT_MS)
  try {
    response = await fetch(
      new URL(`api/${path}`, root), { method, headers, body: body && JSON.stringify(body), signal: aborter.signal }
    )
    if (response.status !== 204) data = await response.json()
  } catch {
    // What is no JSON does not come from the service, but from a proxy in front of it.
    throw new Failure(texts.unreachable, response?.status)
  } finally {
    clearTimeout(timer)
  }
  if (!response.ok) throw failureOf(response, data)
  return { data, headers: response.headers }
}

// Which field of a form a failure is about. A sentence about an input begins with its name.
const FIELDS = { EMAIL_TAKEN: 'email', WRONG_PASSWORD: 'currentPassword', PASSWORD_REQUIRED: 'password' }

function failureOf (response, data) {
  const { code, error, errors = [error] } = data
  const wait = Number(response.headers.get('retry-after'))
  const textOf = (name) => textsOfFailures.get(name)
  const parts = errors.map((sentence) => ({
    // What a hook of the service says is a better reason than that one has rejected something.
    text: (code === 'REJECTED' ? undefined : textOf(code)) ?? textOf(sentence) ??
      inputText(sentence ?? '', texts, lang) ?? (sentence ? toSentence(sentence) : texts.failed),
    field: FIELDS[code] ?? (data.errors ? /^\w+/.exec(sentence)?.[0] : undefined),
    rule: toSentence((sentence ?? '').replace(/^\w+ /, '')),
  }))
  if (response.status === TOO_MANY && wait > 0) parts.splice(0, parts.length, { text: waitText(wait) })
  const failure = new Failure(parts.map(({ text }) => text).join(' '), response.status, data)
  failure.parts = parts
  return failure
}

function waitText (seconds) {
  const format = new Intl.RelativeTimeFormat(lang)
  return formatText(texts.tooManyWait, {
    when: seconds < MINUTE_S ? format.format(seconds, 'second') : format.format(Math.ceil(seconds / MINUTE_S), 'minute'),
  }, lang)
}

/** Returns the text for the code of a failure, which may be anything. */
export const failureText = (code) => textsOfFailures.get(code) ?? texts.failed

/** Runs an action, once at a time, when a button is used. Shows its failure in an element. */
export function onUse (target, event, alert, action) {
  const button = target.querySelector?.('button:not([type=button])') ?? target
  let busy = false
  target.addEventListener(event, async (given) => {
    given.preventDefault()
    if (busy) return
    busy = true
    alert.textContent = ''
    markField(alert, false)
    if (target.elements) for (const field of target.elements) showError(field, '')
    // Unlike `disabled`, this keeps the focus.
    button.setAttribute('aria-disabled', 'true')
    button.setAttribute('aria-busy', 'true')
    try {
      await action()
    } catch (error) {
      if (error instanceof Cancelled) return
      alert.textContent = error instanceof Failure ? showAtFields(target, error) : texts.failed
      markField(alert, true)
      if (!(error instanceof Failure)) console.error(error)
    } finally {
      busy = false
      button.removeAttribute('aria-disabled')
      button.removeAttribute('aria-busy')
    }
  })
}

// A field is described by its hint and by the place of its error.
const errorOf = (field) => field.id ? document.getElementById(`${field.id}-error`) : null

// Marks the only field of a form, whose alert stands at it.
function markField (alert, isInvalid) {
  if (!alert.classList.contains('field-error')) return
  const field = document.querySelector(`[aria-describedby~="${alert.id}"]`)
  if (isInvalid) field?.setAttribute('aria-invalid', 'true')
  else field?.removeAttribute('aria-invalid')
}

function showError (field, text) {
  const place = errorOf(field)
  if (!place) return
  place.textContent = text
  if (!text) return field.removeAttribute('aria-invalid')
  field.setAttribute('aria-invalid', 'true')
  reveal(field)
}

// What is wrong in a part that is folded could not be seen.
function reveal (field) {
  const fold = field.closest('details')
  if (fold) fold.open = true
}
document.addEventListener('invalid', ({ target }) => reveal(target), { capture: true })

// Shows what is about a field of the form there, and returns the rest.
function showAtFields (form, { message, parts = [{ text: message }] }) {
  const others = []
  let first
  for (const { text, field: name, rule } of parts) {
    const field = name && form.elements?.namedItem(name)
    if (field && !field.disabled && errorOf(field)) {
      // A field of the host is not called by its name there.
      showError(field, field.dataset.host === undefined ? text : rule)
      first ??= field
    } else others.push(text)
  }
  first?.focus()
  return others.join(' ')
}

/** Runs an action with the values of a form when it is submitted. */
export function onSubmit (form, action) {
  const alert = form.querySelector('[role=alert]')
  onUse(form, 'submit', alert, async () => {
    try {
      await action(Object.fromEntries(new FormData(form)))
    } catch (error) {
      form.querySelector('input[name]:not([type=hidden]):enabled')?.focus()
      throw error
    }
  })
}

/** Shows a text in a status element and moves the focus there, because the focused element may have gone. */
export function announce (status, text) {
  status.textContent = text
  status.focus()
}

for (const button of document.querySelectorAll('[data-shows-password]')) {
  const field = button.previousElementSibling
  const show = (isShown) => {
    field.type = isShown ? 'text' : 'password'
    button.setAttribute('aria-pressed', `${isShown}`)
  }
  button.hidden = false
  button.addEventListener('click', () => show(field.type === 'password'))
  field.form.addEventListener('reset', () => show(false))
}

// A menu closes by what is pressed anywhere, also in it, before that does something: a dialog then gives the focus back
// to the button of the menu, which can be seen.
document.addEventListener('click', ({ target }) => {
  for (const menu of document.querySelectorAll('.menu[open]')) {
    const isInside = menu.contains(target)
    if (isInside && !target.closest('.items :is(button, a)')) continue
    menu.open = false
    if (isInside) menu.querySelector('summary').focus()
  }
}, { capture: true })
document.addEventListener('keydown', ({ key }) => {
  const menu = key === 'Escape' && document.querySelector('.menu[open]')
  if (!menu) return
  menu.open = false
  menu.querySelector('summary').focus()
})

/** Gives the button of the menu of a row a name of its own. */
export function nameMenu (row, name) {
  const button = row.querySelector('[data-menu]')
  button.setAttribute('aria-label', `${button.getAttribute('aria-label')}: ${name}`)
}

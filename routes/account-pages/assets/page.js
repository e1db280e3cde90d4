// What the scripts of all pages use. Texts from users and from the service are set as `textContent` and as values of
// fields only.
import { failures, texts } from './texts.js'

export { texts }

const root = new URL('../../', import.meta.url)
const TIMEOUT_MS = 30_000

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

/** Returns the address of a page. */
export const pageUrl = (path) => new URL(path, root).href

/** Sends a request to the API. Returns the body of the response. Throws `Failure`. */
export async function send (method, path, body, token) {
  return (await request(method, path, body, token)).data
}

/** Sends a request to the API. Returns the body and the headers of the response. Throws `Failure`. */
export async function request (method, path, body, token) {
  const headers = {
    ...body && { 'content-type': 'application/json' }, ...token && { authorization: `Bearer ${token}` },
  }
  let response
  let data = {}
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    response = await fetch(
      new URL(`api/${path}`, root), { method, headers, body: body && JSON.stringify(body), signal }
    )
    if (response.status !== 204) data = await response.json()
  } catch {
    // What is no JSON does not come from the service, but from a proxy in front of it.
    throw new Failure(texts.unreachable, response?.status)
  }
  if (!response.ok) throw new Failure(explain(data), response.status, data)
  return { data, headers: response.headers }
}

function explain ({ code, error, errors = [error] }) {
  const textOf = (name) => Object.hasOwn(failures, name) ? failures[name] : undefined
  return errors.map((sentence) => textOf(code) ?? textOf(sentence) ??
    (sentence ? `${sentence[0].toUpperCase()}${sentence.slice(1)}.` : texts.failed)).join(' ')
}

/** Returns the text for the code of a failure, which may be anything. */
export const failureText = (code) => Object.hasOwn(failures, code) ? failures[code] : texts.failed

/** Runs an action, once at a time, when a button is used. Shows its failure in an element. */
export function onUse (target, event, alert, action) {
  const button = target.querySelector?.('button') ?? target
  let busy = false
  target.addEventListener(event, async (given) => {
    given.preventDefault()
    if (busy) return
    busy = true
    alert.textContent = ''
    // Unlike `disabled`, this keeps the focus.
    button.setAttribute('aria-disabled', 'true')
    try {
      await action()
    } catch (error) {
      if (error instanceof Cancelled) return
      alert.textContent = error instanceof Failure ? error.message : texts.failed
      if (!(error instanceof Failure)) console.error(error)
    } finally {
      busy = false
      button.removeAttribute('aria-disabled')
    }
  })
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

for (const box of document.querySelectorAll('[data-shows-passwords]')) {
  const fields = box.form.querySelectorAll('[type=password]')
  box.closest('label').hidden = false
  box.addEventListener('change', () => { for (const field of fields) field.type = box.checked ? 'text' : 'password' })
}

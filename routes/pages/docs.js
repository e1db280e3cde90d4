/* global createSession */
const PASTED = 'usher:pasted-token'

const base = new URL(`${document.body.dataset.base}/`, location.href)
const tokenForm = document.querySelector('#token-form')
const pasted = document.querySelector('#pasted')
const removal = tokenForm.querySelector('[type=button]')
const filter = document.querySelector('#filter')
const operations = [...document.querySelectorAll('.operation')]

// The token of the session. One that was pasted takes its place.
let sessionToken
const session = createSession((token) => { sessionToken = token })
const tokenToSend = () => storage('getItem') ?? sessionToken

document.querySelector('#late').remove()
document.querySelector('#find').hidden = false
for (const actions of document.querySelectorAll('.operation form > .actions')) actions.hidden = false

tokenForm.addEventListener('submit', (event) => {
  event.preventDefault()
  storage('setItem', pasted.value.trim().replace(/^Bearer\s+/i, ''))
  showPasted()
})
removal.addEventListener('click', () => {
  storage('removeItem')
  showPasted()
})
document.addEventListener('submit', (event) => {
  if (event.target.dataset.path === undefined) return
  event.preventDefault()
  send(event.target)
})
filter.addEventListener('input', find)
window.addEventListener('hashchange', openTarget)
showPasted()
openTarget()
session.restore()

function showPasted () {
  const isPasted = storage('getItem') !== null
  pasted.value = ''
  removal.hidden = !isPasted
  document.querySelector('#token-status').textContent = isPasted ? 'Requests carry the token that you have given.' : ''
}

/** Opens what the fragment of the address names, and what that is in. */
function openTarget () {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (!target) return
  for (let element = target; element; element = element.parentElement) {
    if (element.localName === 'details') element.open = true
  }
  target.scrollIntoView()
}

/** Shows the operations that have all words of the filter, and opens their tags. */
function find () {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean)
  let count = 0
  for (const operation of operations) {
    const text = `${operation.id} ${operation.querySelector('summary').textContent}`.toLowerCase()
    operation.hidden = !words.every((word) => text.includes(word))
    if (!operation.hidden) count++
  }
  for (const tag of document.querySelectorAll('.tag')) {
    const isEmpty = tag.querySelector('.operation:not([hidden])') === null
    tag.hidden = isEmpty
    tag.open = words.length > 0 && !isEmpty
  }
  document.querySelector('#found').textContent = words.length > 0 ? `${count} of ${operations.length} operations` : ''
}

async function send (form) {
  const answer = form.parentElement.querySelector('.answer')
  const button = form.querySelector('.actions button')
  const { url, init } = requestOf(form)
  button.setAttribute('aria-busy', 'true')
  answer.replaceChildren(line('Waiting for the response …'))
  const begun = performance.now()
  try {
    const response = await fetch(url, init)
    const body = await response.blob()
    const text = await textOf(response, body)
    const milliseconds = Math.round(performance.now() - begun)
    answer.replaceChildren(
      response.type === 'opaqueredirect'
        ? line('A redirect, which browsers do not show to scripts.', 'strong')
        : statusOf(response, milliseconds),
      ...text === undefined ? [download(form, body)] : text === '' ? [] : [block('Body', text)],
      more('Headers', [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')),
      more('curl', curlOf(url, init))
    )
    followSession(url, response, text)
  } catch (error) {
    answer.replaceChildren(line(`The request has failed: ${error.message}.`, 'strong failed'))
  } finally {
    button.removeAttribute('aria-busy')
  }
}

/** Returns the request that a form describes. */
function requestOf (form) {
  const headers = {}
  const query = new URLSearchParams()
  let path = form.dataset.path
  for (const { dataset, value } of form.querySelectorAll('[data-in]')) {
    if (dataset.in === 'path') path = path.replace(`{${dataset.name}}`, encodeURIComponent(value))
    else if (value !== '' && dataset.in === 'query') query.append(dataset.name, value)
    else if (value !== '' && dataset.in === 'header') headers[dataset.name] = value
  }
  const token = tokenToSend()
  if (token) headers.Authorization = `Bearer ${token}`
  const init = { method: form.dataset.method, headers, redirect: 'manual', cache: 'no-store' }
  const field = form.querySelector('[data-body]')
  if (field) Object.assign(init, bodyOf(field, form.querySelector('[data-type]')?.value, headers))
  const url = new URL(path.slice(1), base)
  url.search = query
  return { url, init }
}

function bodyOf (field, type = field.dataset.body, headers) {
  if (field.localName === 'fieldset') {
    const form = new FormData()
    // Fields come before the file, because the service reads the form as it arrives.
    const inputs = [...field.querySelectorAll('[name]')].sort((one, other) => (one.type === 'file') - (other.type === 'file'))
    for (const { name, files, value, required } of inputs) {
      if (required || value !== '') form.append(name, files ? files[0] : value)
    }
    return { body: type === 'multipart/form-data' ? form : new URLSearchParams(form) }
  }
  const body = field.files ? field.files[0] : field.value
  if (body === undefined || body === '') return {}
  headers['Content-Type'] = type
  return { body }
}

async function textOf (response, body) {
  const type = response.headers.get('content-type') ?? ''
  if (/[/+]json\b/.test(type)) {
    const text = await body.text()
    try {
      return JSON.stringify(JSON.parse(text), null, 2)
    } catch {
      return text
    }
  }
  return body.size === 0 || /^text\//.test(type) ? body.text() : undefined
}

/** Returns the command that sends a request. It names the token, which is nothing for the history of a shell. */
function curlOf (url, { method, headers, body }) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`
  const parts = [`curl -X ${method} ${quote(url.href)}`]
  for (const [name, value] of Object.entries(headers)) {
    parts.push(name === 'Authorization' ? '-H "Authorization: Bearer $TOKEN"' : `-H ${quote(`${name}: ${value}`)}`)
  }
  if (typeof body === 'string') parts.push(`--data-raw ${quote(body)}`)
  else if (body instanceof FormData || body instanceof URLSearchParams) {
    const option = body instanceof FormData ? '-F' : '--data-urlencode'
    for (const [name, value] of body) parts.push(`${option} ${quote(`${name}=${value.name === undefined ? value : `@${value.name}`}`)}`)
  } else if (body) parts.push(`--data-binary ${quote(`@${body.name}`)}`)
  return parts.join(' \\\n  ')
}

// A login, refresh or logout that was sent from here has the same effect as the form.
function followSession ({ href }, response, text) {
  if (!response.ok || !href.startsWith(`${session.api}/auth/`)) return
  const operation = href.slice(session.api.length)
  if (['/auth/login', '/auth/login/second-factor', '/auth/refresh'].includes(operation)) session.accept(JSON.parse(text))
  if (operation === '/auth/logout') session.forget()
}

function statusOf ({ ok, status, statusText }, milliseconds) {
  const shown = line('', 'strong')
  const badge = Object.assign(document.createElement('span'), {
    className: ok ? 'badge success' : 'badge error', textContent: `${status} ${statusText}`.trim(),
  })
  shown.append(badge, ` ${milliseconds} ms`)
  return shown
}

function line (text, name = '') {
  return Object.assign(document.createElement('p'), { className: name, textContent: text })
}

function block (label, text) {
  const pre = Object.assign(document.createElement('pre'), { textContent: text, tabIndex: 0 })
  pre.setAttribute('role', 'region')
  pre.setAttribute('aria-label', label)
  return pre
}

function more (label, text) {
  const details = document.createElement('details')
  details.append(Object.assign(document.createElement('summary'), { textContent: label }), block(label, text))
  return details
}

function download ({ dataset: { path } }, body) {
  const href = URL.createObjectURL(body)
  const link = Object.assign(document.createElement('a'), {
    href, download: path.slice(path.lastIndexOf('/') + 1), textContent: `Save the body (${body.size} bytes)`,
  })
  const paragraph = line('')
  paragraph.append(link)
  return paragraph
}

// Browsers that block cookies also block the storage.
function storage (method, ...values) {
  try {
    return sessionStorage[method](PASTED, ...values)
  } catch {
    return null
  }
}

/* global createSession */
const PASTED = 'usher:pasted-token'
// Names before a colon and options of commands, texts, numbers and words.
const TOKENS = /("(?:[^"\\]|\\.)*"(?=\s*:)|\B-{1,2}[a-zA-Z][\w-]*)|("(?:[^"\\]|\\.)*"|'[^']*')|\b(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b|\b(true|false|null|curl)\b/g
const KINDS = ['attr', 'string', 'number', 'keyword']

const base = new URL(`${document.body.dataset.base}/`, location.href)
const tokenForm = document.querySelector('#token-form')
const pasted = document.querySelector('#pasted')
const removal = tokenForm.querySelector('[type=button]')
const filter = document.querySelector('#filter')
const drawer = document.querySelector('#contents')
// The forms whose command is shown as it is sent.
const prepared = new Set()
const links = new Map([...drawer.querySelectorAll('.index a')].map((link) => [link.hash.slice(1), link]))

// The token of the session. One that was pasted takes its place.
let sessionToken
let who = ''
// The link to what is read.
let marked
const session = createSession((token) => {
  sessionToken = token
  showSender()
})
const tokenToSend = () => storage('getItem') ?? sessionToken

document.querySelector('#late').remove()
for (const hidden of document.querySelectorAll('#find, [data-find], [data-copy], .request .panel-foot')) hidden.hidden = false
// There is room for all of them beside the words.
if (matchMedia('(min-width: 52rem)').matches) {
  for (const parameters of document.querySelectorAll('.optional')) parameters.open = true
}

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
document.addEventListener('input', ({ target }) => {
  if (target.form?.dataset.path !== undefined) showCommand(target.form)
})
document.addEventListener('click', ({ target }) => {
  const copying = target.closest('[data-copy]')
  if (copying) copy(copying)
  else if (target.closest('[data-find]')) openFilter()
  else if (target.closest('#contents a')) drawer.hidePopover?.()
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea, select')) return
  event.preventDefault()
  openFilter()
})
filter.addEventListener('input', find)
filter.addEventListener('keydown', ({ key }) => {
  if (key === 'Enter') [...links.values()].find((link) => link.hash.startsWith('#operation-') && !link.parentElement.hidden)?.click()
})
window.addEventListener('hashchange', openTarget)
prepareWhatIsNear()
showPasted()
openTarget()
followScrolling()
session.restore()

function showPasted () {
  const isPasted = storage('getItem') !== null
  pasted.value = ''
  removal.hidden = !isPasted
  document.querySelector('#token-status').textContent = isPasted ? 'Requests carry the token that you have given.' : ''
  showSender()
}

/** Says at each button who sends the request. */
function showSender () {
  const sender = storage('getItem') !== null ? 'with the token that you have given' : sessionToken ? 'with your session' : 'without a token'
  if (sender === who) return
  who = sender
  for (const place of document.querySelectorAll('.request .panel-foot > span')) place.textContent = sender
  for (const form of prepared) showCommand(form)
}

/** Opens what the fragment of the address names, and what that is in. */
function openTarget () {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (!target) return
  for (let element = target; element; element = element.parentElement) {
    if (element.localName === 'details') element.open = true
  }
  stayAt(target)
}

/** Shows a part of the page, also if what is above it gets another height while it is shown for the first time. */
function stayAt (target) {
  const observer = new ResizeObserver(() => target.scrollIntoView())
  for (const part of document.querySelectorAll('.tag')) observer.observe(part)
  const stop = () => observer.disconnect()
  for (const type of ['wheel', 'touchstart', 'pointerdown', 'keydown']) addEventListener(type, stop, { once: true, passive: true })
  setTimeout(stop, 2000)
}

function openFilter () {
  // It is beside the content where there is room.
  if (getComputedStyle(drawer).position !== 'sticky' && !drawer.matches(':popover-open')) drawer.showPopover?.()
  filter.focus()
  filter.select()
}

/** Shows the operations in the list that have all words of the filter. */
function find () {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean)
  let [count, all] = [0, 0]
  for (const group of drawer.querySelectorAll('.index > li')) {
    const own = [...group.querySelectorAll('li')]
    for (const item of own) {
      const link = item.firstElementChild
      const text = `${link.dataset.words} ${link.textContent}`.toLowerCase()
      item.hidden = !words.every((word) => text.includes(word))
    }
    const shown = own.filter((item) => !item.hidden).length
    group.hidden = words.length > 0 && shown === 0
    count += shown
    all += own.length
  }
  document.querySelector('#found').textContent = words.length > 0 ? `${count} of ${all} operations` : ''
}

/** Shows commands and examples as they come near: there are hundreds. */
function prepareWhatIsNear () {
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue
      observer.unobserve(target)
      prepared.add(target)
      showCommand(target)
      const example = target.querySelector('.response code')
      if (example) paint(example, example.textContent)
    }
  }, { rootMargin: '100% 0px' })
  for (const form of document.querySelectorAll('.operation > form')) observer.observe(form)
}

/** Marks in the list what is at the top of the window. */
function followScrolling () {
  const parts = document.querySelectorAll('.operation, .tag')
  const seen = new Set()
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) seen.add(target)
      else seen.delete(target)
    }
    // An operation is inside of its group, and after it.
    const current = [...parts].filter((part) => seen.has(part)).pop()
    mark(current && links.get(current.id))
  }, { rootMargin: '-15% 0px -80% 0px' })
  for (const part of parts) observer.observe(part)
}

function mark (link) {
  if (link === marked) return
  marked?.removeAttribute('aria-current')
  marked = link
  link?.setAttribute('aria-current', 'true')
  if (!link || link.offsetParent === null) return
  const { top, bottom } = link.getBoundingClientRect()
  const frame = drawer.getBoundingClientRect()
  if (top < frame.top + 80 || bottom > frame.bottom - 40) drawer.scrollTop += top - frame.top - frame.height / 3
}

function showCommand (form) {
  const { url, init } = requestOf(form)
  paint(form.querySelector('.request code'), curlOf(url, init))
}

async function copy (button) {
  await navigator.clipboard.writeText(button.closest('.panel').querySelector('code').textContent)
  button.textContent = 'Copied'
  setTimeout(() => { button.textContent = 'Copy' }, 2000)
}

/** Shows JSON or a command with colors. */
function paint (place, text) {
  const parts = []
  let end = 0
  for (const match of text.matchAll(TOKENS)) {
    const kind = KINDS[match.slice(1).findIndex((found) => found !== undefined)]
    parts.push(text.slice(end, match.index), Object.assign(document.createElement('span'), { className: `hljs-${kind}`, textContent: match[0] }))
    end = match.index + match[0].length
  }
  place.replaceChildren(...parts, text.slice(end))
}

async function send (form) {
  const answer = form.querySelector('.answer')
  const button = form.querySelector('.panel-foot button')
  const { url, init } = requestOf(form)
  button.setAttribute('aria-busy', 'true')
  const begun = performance.now()
  try {
    const response = await fetch(url, init)
    const body = await response.blob()
    const text = await textOf(response, body)
    const milliseconds = Math.round(performance.now() - begun)
    answer.replaceChildren(panel(
      response.type === 'opaqueredirect'
        ? line('A redirect, which browsers do not show to scripts.', 'strong')
        : statusOf(response, milliseconds),
      ...text === undefined ? [download(form, body)] : text === '' ? [line('No body', 'muted')] : [block('Body', text)],
      more('Headers', [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'))
    ))
    followSession(url, response, text)
  } catch (error) {
    answer.replaceChildren(panel(line(`The request has failed: ${error.message}.`, 'strong failed')))
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
    if (dataset.in === 'path') path = value === '' ? path : path.replace(`{${dataset.name}}`, encodeURIComponent(value))
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
  if (field.localName === 'ul') {
    const form = new FormData()
    // Fields come before the file, because the service reads the form as it arrives.
    const inputs = [...field.querySelectorAll('[name]')].sort((one, other) => (one.type === 'file') - (other.type === 'file'))
    for (const { name, files, value, required } of inputs) {
      if (required || value !== '') form.append(name, files ? files[0] ?? new File([], name) : value)
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
  // What is not filled in yet keeps its name.
  const parts = [`curl -X ${method} ${quote(url.href.replaceAll('%7B', '{').replaceAll('%7D', '}'))}`]
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
  const badge = Object.assign(document.createElement('span'), {
    className: ok ? 'badge success' : 'badge error', textContent: `${status} ${statusText}`.trim(),
  })
  const head = element('div', 'panel-head')
  head.append('Response', badge, Object.assign(element('span', 'muted'), { textContent: `${milliseconds} ms` }))
  return head
}

const element = (name, className) => Object.assign(document.createElement(name), { className })

function panel (...content) {
  const place = element('div', 'panel response')
  place.append(...content)
  return place
}

const line = (text, className = '') => Object.assign(element('p', className), { textContent: text })

function block (label, text) {
  const pre = Object.assign(document.createElement('pre'), { tabIndex: 0 })
  pre.setAttribute('role', 'group')
  pre.setAttribute('aria-label', label)
  const code = document.createElement('code')
  paint(code, text)
  pre.append(code)
  return pre
}

function more (label, text) {
  const details = element('details', 'fold')
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

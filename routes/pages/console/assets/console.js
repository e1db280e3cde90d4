// The console works without this script. It saves a visitor a button, gives a failure the focus, selects all rows of a
// list, searches while its reader types, asks in dialogs what are pages otherwise, and copies.
import { showTimes } from './ui.js'

const TYPING_MS = 250
const COPIED_MS = 2000

document.getElementById('open')?.submit()

// On a phone, the tabs do not fit.
document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })

const failure = document.querySelector('[aria-invalid=true], .alert.error:not([hidden]), .alert.warning')
if (failure) {
  if (!failure.matches('input, select, textarea')) failure.tabIndex = -1
  failure.focus()
}

// A box in the head of a list that selects its rows.
function addSelection (root) {
  for (const table of root.querySelectorAll('.picks table')) {
    const head = table.querySelector('thead .pick')
    const boxes = table.querySelectorAll('td.pick input')
    const all = document.createElement('input')
    all.type = 'checkbox'
    all.autocomplete = 'off'
    all.setAttribute('aria-label', head.textContent)
    head.append(all)
    all.addEventListener('change', () => { for (const box of boxes) box.checked = all.checked })
    table.addEventListener('change', () => {
      const checked = Array.from(boxes).filter((box) => box.checked).length
      all.checked = checked === boxes.length
      all.indeterminate = checked > 0 && !all.checked
    })
  }
}
addSelection(document)

// Reads another page. The browser makes a document of the answer, in which no script runs.
function read (address, onLoad, body) {
  const request = new XMLHttpRequest()
  request.responseType = 'document'
  request.open(body ? 'POST' : 'GET', address)
  request.addEventListener('load', () => onLoad(request.responseXML, request.responseURL))
  request.addEventListener('error', () => onLoad(null))
  request.send(body)
  return request
}

// Shows another page of the same list in place of this one.
const load = (address, target) => read(address, (page, arrived) => {
  const found = page?.getElementById(target)
  // Whoever has no session any more is led to the login.
  if (!found || arrived !== address) return location.assign(address)
  showTimes(found)
  addSelection(found)
  document.getElementById(target).replaceWith(document.adoptNode(found))
  history.replaceState(null, '', address)
})

for (const form of document.querySelectorAll('form[data-live]')) {
  const input = form.querySelector('input[type=search]')
  let timer
  let request
  input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (!form.checkValidity()) return
      request?.abort()
      const address = new URL(form.action)
      for (const [name, value] of new FormData(form)) if (value !== '') address.searchParams.set(name, value)
      request = load(address.href, form.dataset.live)
    }, TYPING_MS)
  })
}

// Whoever has to type what is deleted cannot send the form before.
function requireTyped (root) {
  for (const input of root.querySelectorAll('input[data-expects]')) {
    const button = input.form.querySelector('button')
    const check = () => { button.disabled = input.value.trim().toLowerCase() !== input.dataset.expects.toLowerCase() }
    input.addEventListener('input', check)
    check()
  }
}
requireTyped(document)

// A page that asks is shown as a dialog, where it was asked for. Its form goes where that of the page would.
function ask (address, instead, body) {
  read(address, (page) => {
    const question = page?.getElementById('question')
    if (!question) return instead()
    const dialog = document.createElement('dialog')
    dialog.className = 'question'
    dialog.setAttribute('aria-labelledby', 'question-heading')
    const heading = document.createElement('h2')
    heading.id = 'question-heading'
    heading.textContent = page.querySelector('h1').textContent
    dialog.append(heading, ...question.childNodes)
    dialog.addEventListener('close', () => dialog.remove())
    dialog.addEventListener('click', (event) => {
      // The dialog itself is what is around its content, and behind it.
      const isOutside = event.target === dialog && !isWithin(dialog.getBoundingClientRect(), event)
      if (!isOutside && !event.target.closest('.cancel')) return
      event.preventDefault()
      dialog.close()
    })
    document.body.append(dialog)
    showTimes(dialog)
    requireTyped(dialog)
    dialog.showModal()
  }, body)
}
const isWithin = ({ left, right, top, bottom }, { clientX, clientY }) =>
  clientX >= left && clientX <= right && clientY >= top && clientY <= bottom

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-asks]')
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  ask(link.href, () => location.assign(link.href))
})

// Before ui.js, which marks the button as busy unless the form stays here.
document.addEventListener('submit', (event) => {
  const { target, submitter } = event
  if (!submitter || !('asks' in submitter.dataset)) return
  event.preventDefault()
  // Its buttons are called `action`, and would be what the property is.
  ask(target.getAttribute('action'), () => {
    submitter.removeAttribute('data-asks')
    target.requestSubmit(submitter)
  }, new URLSearchParams(new FormData(target, submitter)))
}, true)

if (navigator.clipboard) for (const button of document.querySelectorAll('[data-copies]')) button.hidden = false
document.addEventListener('click', async ({ target }) => {
  const button = target.closest('[data-copies]')
  if (!button || 'before' in button.dataset) return
  await navigator.clipboard.writeText(button.dataset.copies)
  const { done } = button.dataset
  button.dataset.before = button.textContent
  // A screen reader reads what the button, which has the focus, says now.
  button.setAttribute('aria-live', 'polite')
  button.textContent = done
  setTimeout(() => {
    button.textContent = button.dataset.before
    delete button.dataset.before
  }, COPIED_MS)
})

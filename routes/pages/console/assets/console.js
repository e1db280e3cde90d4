// The console works without this script. It saves a visitor a button, gives a failure the focus, selects all rows of a
// list, and searches while its reader types.
import { showTimes } from './ui.js'

const TYPING_MS = 250

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

// Shows another page of the same list in place of this one. The browser makes a document of the answer, in which no
// script runs.
function load (address, target) {
  const request = new XMLHttpRequest()
  request.responseType = 'document'
  request.open('GET', address)
  request.addEventListener('load', () => {
    const found = request.responseXML?.getElementById(target)
    // Whoever has no session any more is led to the login.
    if (!found || request.responseURL !== address) return location.assign(address)
    showTimes(found)
    addSelection(found)
    document.getElementById(target).replaceWith(document.adoptNode(found))
    history.replaceState(null, '', address)
  })
  request.send()
  return request
}

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

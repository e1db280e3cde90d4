// What pages do that are rendered on the server: buttons that show that they work, dialogs, toasts and local times.
const { lang } = document.documentElement
const times = new Intl.DateTimeFormat(lang || undefined, { dateStyle: 'medium', timeStyle: 'short' })
const dates = new Intl.DateTimeFormat(lang || undefined, { dateStyle: 'medium' })
const clock = new Intl.DateTimeFormat(lang || undefined, { timeStyle: 'short' })

/** Shows the times in a part of the page in the time zone of the reader. */
export function showTimes (root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const instant = new Date(time.dateTime)
    const isShortened = ['short', 'clock', 'ago'].some((name) => name in time.dataset)
    time.title = isShortened ? times.format(instant) : time.textContent
    if ('ago' in time.dataset) continue
    time.textContent = ('short' in time.dataset ? dates : 'clock' in time.dataset ? clock : times).format(instant)
  }
}
showTimes(document)

const busy = new Set()

// Unlike `disabled`, this keeps the focus, and the button's value is sent.
document.addEventListener('submit', (event) => {
  const { submitter, target } = event
  if (event.defaultPrevented || target.method === 'dialog' || !submitter) return
  if (submitter.getAttribute('aria-busy') === 'true') return event.preventDefault()
  busy.add(submitter)
  submitter.setAttribute('aria-busy', 'true')
  submitter.setAttribute('aria-disabled', 'true')
})

// The browser shows a page as it was left when the user comes back to it.
addEventListener('pageshow', () => {
  for (const button of busy) {
    button.removeAttribute('aria-busy')
    button.removeAttribute('aria-disabled')
  }
  busy.clear()
})

document.addEventListener('click', ({ target }) => {
  const button = target.closest?.('[data-opens], [data-closes]')
  if (!button) return
  if (button.dataset.opens) document.getElementById(button.dataset.opens).showModal()
  else button.closest('dialog').close()
})

/** Shows a text for some seconds, and lets screen readers read it. */
export function toast (text) {
  const place = document.querySelector('.toasts')
  const element = document.createElement('div')
  element.className = 'toast'
  element.textContent = text
  place.append(element)
  setTimeout(() => element.remove(), 6000)
}

// The states of the rows of the page of what a user logs in with.
import { texts } from './page.js'

const numbers = new Intl.NumberFormat(document.documentElement.lang)

/** Shows whether a way to log in is set up, or how many of a kind there are. */
export function showState (id, state) {
  const place = document.querySelector(`#${id}-state`)
  place.textContent = typeof state === 'number' ? numbers.format(state) : texts[state ? 'stateOn' : 'stateOff']
  place.classList.toggle('success', state === true)
}

// A button that sends a mail once more. The service sends only a few to one address, and does not say so.
import { announce, onUse, texts } from './page.js'

const TIMES = 2
const used = new WeakMap()

/** Lets a button run an action, twice at most, and says what has happened. */
export function offerAgain (button, status, action) {
  const isNew = !used.has(button)
  used.set(button, { action, left: TIMES })
  button.hidden = false
  if (!isNew) return
  onUse(button, 'click', status, async () => {
    const state = used.get(button)
    await state.action()
    state.left--
    button.hidden = state.left === 0
    announce(status, state.left === 0 ? texts.sendAgainLimit : texts.sentAgain)
  })
}

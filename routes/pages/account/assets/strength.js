// How strong a new password is, while it is typed. The service decides; this only helps before.
import { passwordStrength } from './functions.js'
import { format, texts } from './page.js'

// So that screen readers are not interrupted by every letter.
const QUIET_MS = 400
const LEVELS = ['strengthWeak', 'strengthWeak', 'strengthFair', 'strengthGood', 'strengthStrong']

/**
 * Shows the strength of the new password of the page, if it has a field for one.
 * @param personal returns the name and the address, which are no passwords
 */
export function showStrength (personal) {
  const field = document.querySelector('[data-new-password]')
  if (!field) return
  const place = document.querySelector('#strength')
  const [meter, text] = [place.querySelector('meter'), document.querySelector('#strength-text')]
  let common = new Set()
  let timer

  function show () {
    place.hidden = field.value === ''
    const { level, problem, missing } = passwordStrength(field.value, { personal: personal().filter(Boolean), common })
    meter.value = level
    clearTimeout(timer)
    timer = setTimeout(() => {
      const said = problem === undefined ? texts[LEVELS[level]] : format(texts[problem], { count: missing })
      if (text.textContent !== said) text.textContent = said
    }, QUIET_MS)
  }

  field.addEventListener('input', show)
  field.form.addEventListener('reset', () => { place.hidden = true })
  // The most common passwords are not worth a load before they are needed.
  field.addEventListener('focus', async () => {
    try {
      ({ common } = await import('./common.js'))
      if (field.value !== '') show()
    } catch {
      // The service knows all of them.
    }
  }, { once: true })
}

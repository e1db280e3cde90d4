// The dialog that deletes something after its name was typed.
import { onSubmit, onUse } from './page.js'

const find = (selector) => document.querySelector(selector)
const dialog = find('#deletion')
const form = find('#deletion-form')
const submit = form.querySelector('.danger')
const fold = (text) => text.trim().toLowerCase()

/**
 * Lets a button open the dialog. `nameOf` returns what has to be typed, `remove` runs after that, and `then` once the
 * dialog is closed.
 */
export function offerDeletion (opener, alert, nameOf, remove, then) {
  onUse(opener, 'click', alert, async () => {
    form.reset()
    find('#deletion-alert').textContent = ''
    find('#deletion-name').textContent = nameOf()
    submit.disabled = true
    dialog.showModal()
    find('#deletion-title').focus()
  })
  form.elements.typed.addEventListener('input', ({ target }) => { submit.disabled = fold(target.value) !== fold(nameOf()) })
  onUse(find('#deletion-cancel'), 'click', find('#deletion-alert'), async () => dialog.close())
  onSubmit(form, async () => {
    await remove()
    dialog.close()
    await then()
  })
}

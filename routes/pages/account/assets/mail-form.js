// The pages whose form makes the service send a mail.
import { announce, format, onSubmit, send } from './page.js'
import { offerAgain } from './send-again.js'
import { showStrength } from './strength.js'
import { recallUsername, rememberUsername } from './username.js'
import { valuesOf } from './values.js'

const form = document.querySelector('form')

if (form) {
  const status = document.querySelector('[role=status]')
  const sent = document.querySelector('#sent')
  const others = document.querySelector('#other-ways')
  // Who has typed the address for the login need not type it again.
  if (form.dataset.sends === 'auth/password-reset') form.elements.email.value ||= recallUsername()

  function show (isSent) {
    form.hidden = isSent
    sent.hidden = !isSent
    if (others) others.hidden = isSent
  }

  const { name, email } = form.elements
  showStrength(() => [name.value, email.value])

  onSubmit(form, async (typed) => {
    const values = valuesOf(form, typed)
    await send('POST', form.dataset.sends, values)
    rememberUsername(values.email)
    show(true)
    announce(status, format(form.dataset.sent, { email: values.email }))
    offerAgain(document.querySelector('#send-again'), status, () => send('POST', form.dataset.sends, values))
  })
  document.querySelector('#wrong-address').addEventListener('click', () => {
    show(false)
    status.textContent = ''
    form.elements.email.select()
  })
}

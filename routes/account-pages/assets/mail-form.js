// The pages whose form makes the service send a mail.
import { announce, onSubmit, send, texts } from './page.js'
import { rememberUsername } from './username.js'

const form = document.querySelector('form')

if (form) {
  onSubmit(form, async (values) => {
    await send('POST', form.dataset.sends, values)
    rememberUsername(values.email)
    form.hidden = true
    announce(
      document.querySelector('[role=status]'),
      form.dataset.sends === 'auth/sign-up' ? texts.signUpSent : texts.forgotSent
    )
  })
}

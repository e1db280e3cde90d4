import { onSubmit, send } from './page.js'

const form = document.querySelector('form')

onSubmit(form, async ({ email, password }) => {
  await send('POST', 'auth/login', { email, password })
  // The server has checked this address.
  location.assign(form.dataset.returnTo)
})

import { createHash } from 'node:crypto'
import type { FastifyPluginAsync } from 'fastify'

const style = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { margin: 0; min-height: 100vh; display: grid; place-items: center }
main { width: min(22rem, calc(100vw - 3rem)) }
h1 { font-size: 1.4rem }
label { display: block; margin-bottom: 1rem }
input[name=password] { display: block; width: 100%; box-sizing: border-box; padding: .5rem; font: inherit }
button { font: inherit; padding: .5rem 1rem }
`

// Links carry the token in the fragment, which browsers send neither to servers nor as a referrer, so no log contains it. The
// script also removes it from the address bar, because histories keep addresses and people copy them.
const script = `
const token = new URLSearchParams(location.hash.slice(1)).get('token')
const form = document.querySelector('form')
const { password, show } = form.elements
const button = form.querySelector('button')
const status = document.querySelector('[role=status]')
history.replaceState(null, '', location.pathname)
if (token) form.hidden = false
else status.textContent = 'Open this page with the link from your e-mail.'
show.addEventListener('change', () => { password.type = show.checked ? 'text' : 'password' })
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  button.disabled = true
  status.textContent = ''
  try {
    const response = await fetch('api/auth/password-reset/confirm', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, password: password.value })
    })
    if (response.ok) form.hidden = true
    status.textContent = response.ok ? 'Your password is set. You can log in with it now.' : explain(await response.json())
  } catch {
    status.textContent = 'The service cannot be reached. Try again.'
  }
  button.disabled = false
})
function explain ({ errors, error }) {
  const text = errors ? errors.join('. ') : error
  if (text.startsWith('token ')) return 'This link has expired or was used already. Request a new one.'
  return text[0].toUpperCase() + text.slice(1) + '.'
}
`

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Set your password</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Set your password</h1>
<form hidden>
<label>New password <input name="password" type="password" autocomplete="new-password" minlength="8" maxlength="256" required autofocus></label>
<label><input name="show" type="checkbox" autocomplete="off"> Show password</label>
<button>Set password</button>
</form>
<p role="status"></p>
<noscript><p>This page needs JavaScript.</p></noscript>
</main>
<script>${script}</script>
</body>
</html>
`

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

// Script and styles are inline, and requests go to the page's own origin only.
const policy = [
  "default-src 'none'", `script-src ${hashOf(script)}`, `style-src ${hashOf(style)}`, "connect-src 'self'",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join('; ')

/** Adds GET /set-password, the page that the links in mails open, unless the option `passwordUrl` names another one. */
const setPassword: FastifyPluginAsync = async (app) => {
  if (app.usherOptions.passwordUrl) return
  app.get('/set-password', { schema: { hide: true } }, (_, reply) => reply
    .headers({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer', 'cache-control': 'no-cache' })
    .type('text/html; charset=utf-8')
    .send(page))
}

export default setPassword

/**
 * Logs a user in on a page. The token is in memory only: when the page is loaded, and before the token expires, the
 * session cookie, which scripts cannot read, gets another one. It may be that of a login on another page.
 *
 * `onToken` gets each new token, and `undefined` when the session is over.
 */
// eslint-disable-next-line no-unused-vars
function createSession (onToken) {
  const section = document.querySelector('#sign-in')
  const [status, fold, account] = section.children
  const form = fold.querySelector('form')
  const { email, password, code } = form.elements
  const alert = form.querySelector('[role=alert]')
  const api = new URL(section.dataset.api, location.href).href
  let token
  let timer
  // Of a login whose password was right, and that waits for the second factor.
  let challenge

  form.addEventListener('submit', logIn)
  fold.addEventListener('toggle', () => { if (fold.open) email.focus() })
  account.querySelector('button').addEventListener('click', end)
  // What is open over the page closes as menus do.
  document.addEventListener('click', ({ target }) => { if (!section.contains(target)) close() })
  section.addEventListener('keydown', ({ key, target }) => {
    if (key !== 'Escape') return
    close()
    target.closest('details')?.querySelector('summary').focus()
  })

  function close () {
    fold.open = account.open = false
  }

  async function logIn (event) {
    event.preventDefault()
    const [path, given] = challenge === undefined
      ? ['/auth/login', { email: email.value, password: password.value }]
      : ['/auth/login/second-factor', {
          challenge, [/^[\d\s-]{6,9}$/.test(code.value) ? 'code' : 'recoveryCode']: code.value,
        }]
    const reply = await send(path, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(given) })
    if (!reply) return
    password.value = ''
    askForCode(undefined)
    accept(reply)
  }

  /** Shows the field for the second factor, which belongs to a challenge, or hides it. */
  function askForCode (given) {
    challenge = given
    code.value = ''
    code.required = given !== undefined
    code.parentElement.hidden = given === undefined
    if (given !== undefined) code.focus()
  }

  /** Continues the session of this browser, if there is one, or shows the form. */
  async function restore () {
    const { isSent, hasLogin } = await send('/auth/pages/session', { method: 'GET' }) ?? {}
    if (hasLogin) {
      const link = form.querySelector('a')
      link.href = `${new URL('login', api)}?${new URLSearchParams({ returnTo: location.pathname })}`
      link.hidden = false
    }
    if (isSent) await refresh()
    fold.hidden = token !== undefined
  }

  async function refresh () {
    const reply = await send('/auth/refresh')
    if (reply) accept(reply)
    // The node may be restarting, so a failure that is not a rejection does not end the session.
    else if (token) timer = setTimeout(refresh, 10_000)
  }

  /** Uses the response to a login or a refresh. */
  function accept ({ token: next, expiresIn, user }) {
    token = next
    account.querySelector('bdi').textContent = user.name
    account.querySelector('b').textContent = user.email
    show()
    clearTimeout(timer)
    timer = setTimeout(refresh, expiresIn * 800)
    onToken(token)
  }

  /** Ends the session, if there is one. */
  async function end () {
    if (!token) return
    const headers = { authorization: `Bearer ${token}` }
    forget()
    await send('/auth/logout', { headers })
  }

  function forget () {
    if (token) onToken(token = undefined)
    clearTimeout(timer)
    show()
  }

  function show () {
    close()
    fold.hidden = token !== undefined
    account.hidden = token === undefined
    alert.textContent = ''
    status.textContent = ''
  }

  // Returns the body of a response with status 200. Otherwise it shows why there is none.
  async function send (path, init) {
    try {
      const response = await fetch(api + path, { method: 'POST', ...init })
      if (response.status === 204) return
      const body = await response.json()
      if (response.ok) return body
      const isOver = path === '/auth/refresh' && [401, 403].includes(response.status)
      if (isOver) forget()
      if (['SECOND_FACTOR_REQUIRED', 'INVALID_CHALLENGE'].includes(body.code)) askForCode(body.challenge)
      if (isOver) return say('Your session has ended. Log in again.')
      report(body.code === 'INVALID_CREDENTIALS'
        ? 'The e-mail address or the password is wrong.'
        : `${(body.errors ?? [body.error]).join('. ')}.`)
    } catch {
      report('The service cannot be reached. Try again.')
    }
  }

  // What goes wrong is said in the form, if it is open.
  function report (problem) {
    (fold.open ? alert : status).textContent = problem
  }

  /** Says something that the page has to tell, until something else is said. */
  function say (text) {
    status.textContent = text
  }

  return { api, accept, end, forget, restore, say }
}

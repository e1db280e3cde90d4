/**
 * Signs a user in on a page. The token is in memory only: after a reload, and before it expires, the session cookie,
 * which scripts cannot read, gets another one. `localStorage` only remembers that there is a session, so that the page
 * sends no request that fails for visitors who have none.
 *
 * `onToken` gets each new token, and `undefined` when the session is over.
 */
// eslint-disable-next-line no-unused-vars
function createSession (onToken) {
  const section = document.querySelector('#sign-in')
  const [form, account] = section.children
  const { email, password, code } = form.elements
  const status = section.querySelector('[role=status]')
  const api = new URL(section.dataset.api, location.href).href
  const mark = `usher:session:${api}`
  let token
  let timer
  // Of a login whose password was right, and that waits for the second factor.
  let challenge

  form.addEventListener('submit', signIn)
  account.querySelector('button').addEventListener('click', end)

  async function signIn (event) {
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
    if (remember('getItem')) await refresh()
    form.hidden = token !== undefined
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
    remember('setItem', 'yes')
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
    remember('removeItem')
    show()
  }

  function show (problem = '') {
    form.hidden = token !== undefined
    account.hidden = token === undefined
    status.textContent = problem
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
      status.textContent = isOver
        ? 'Your session has ended. Sign in again.'
        : `${(body.errors ?? [body.error]).join('. ')}.`
    } catch {
      status.textContent = 'The service cannot be reached. Try again.'
    }
  }

  // Browsers that block cookies also block the storage.
  function remember (method, ...values) {
    try {
      return localStorage[method](mark, ...values)
    } catch {}
  }

  return { api, accept, end, forget, restore }
}

/* global SwaggerUIBundle, createSession */
const SCHEME = 'bearer'
const PASTED = 'usher:pasted-token'

const root = document.querySelector('#swagger-ui')
const dark = matchMedia('(prefers-color-scheme: dark)')
dark.addEventListener('change', followTheme)
followTheme()

// The token of the session. Any other token was pasted into the dialog.
let sessionToken

const session = createSession((token) => {
  sessionToken = token
  if (token) ui.preauthorizeApiKey(SCHEME, token)
  else ui.authActions.logout([SCHEME])
})

const ui = SwaggerUIBundle({
  domNode: root,
  url: new URL(root.dataset.document, location.href).href,
  layout: 'BaseLayout',
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [authorization],
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null,
  responseInterceptor: followSession,
  async onComplete () {
    const pasted = storage('getItem')
    if (pasted) ui.preauthorizeApiKey(SCHEME, pasted)
    await session.restore()
  },
})

// Accepts a token with or without `Bearer` before it, and keeps a pasted one until the tab is closed.
function authorization () {
  const authorize = (original) => (definitions) => {
    const { [SCHEME]: definition, ...others } = definitions
    if (!definition) return original(definitions)
    const value = definition.value.trim().replace(/^Bearer\s+/i, '')
    if (value === sessionToken) storage('removeItem')
    else storage('setItem', value)
    return original({ ...others, [SCHEME]: { ...definition, value } })
  }
  const logout = (original) => (names) => {
    if (names.includes(SCHEME)) {
      storage('removeItem')
      session.end()
    }
    return original(names)
  }
  return { statePlugins: { auth: { wrapActions: { authorize, logout } } } }
}

// A login, refresh or logout that was sent with "Try it out" has the same effect as the form.
function followSession (response) {
  if (!response.ok || !response.url.startsWith(`${session.api}/auth/`)) return response
  const operation = response.url.slice(session.api.length)
  if (['/auth/login', '/auth/refresh'].includes(operation)) session.accept(JSON.parse(response.text))
  if (operation === '/auth/logout') session.forget()
  return response
}

function followTheme () {
  document.documentElement.classList.toggle('dark-mode', dark.matches)
}

// Browsers that block cookies also block the storage.
function storage (method, ...values) {
  try {
    return sessionStorage[method](PASTED, ...values)
  } catch {}
}

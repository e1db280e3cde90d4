import type { Options } from '../../../schema/options/options.ts'
import { alert, button, buttonLink, card, field } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'

interface LoginState {
  next?: string
  email?: string
  alert?: HtmlValue
  /** To which login the second factor belongs. */
  challenge?: string
  methods?: readonly string[]
}

/** Returns the content of the page with which an admin logs in to the console. */
export function createLoginPage (
  { publicPath, pages: { enabled }, without }: Pick<Options, 'publicPath' | 'pages' | 'without'>, { path }: { path: string }
) {
  const hasPages = enabled && !without.includes('pages')

  return ({ next = '', email = '', alert: text, challenge, methods = [] }: LoginState): Html => {
    const query = next === '' ? '' : `?${new URLSearchParams({ next })}`
    const failure = text && alert(text, 'error')
    if (challenge !== undefined) return secondFactor(challenge, methods, query, failure)
    const others = `${publicPath}/login?${new URLSearchParams({ returnTo: `${path}/login${query}` })}`
    return html`<h1 tabindex="-1">Log in to the console</h1>
<p class="muted">The console has a session of its own, which ends after an hour. Confirm that it is you.</p>
${failure}
${card(html`<form method="post" action="${path}/login${query}">
${field({
  name: 'email', label: 'E-mail address', type: 'email', value: email, required: true, attributes: { autocomplete: 'username' },
})}
${field({
  name: 'password', label: 'Password', type: 'password', required: true, attributes: { autocomplete: 'current-password' },
})}
${button('Log in', { wide: true })}</form>
${hasPages && html`<div class="divider">or</div>
<p hidden class="alert error" role="alert" id="exchange-error"></p>
<p hidden id="exchange" data-refresh="${publicPath}/api/auth/refresh" data-exchange="${path}/login/session" data-next="${path}${next}">${
  button('Continue with your session', { kind: 'plain', wide: true, type: 'button', attributes: { id: 'continue' } })}</p>
${buttonLink(others, 'Other ways to log in', { kind: 'plain', wide: true })}
<p class="hint">With a passkey or a provider, log in there, and you come back here.</p>`}`)}
<p><a href="${path}${next}">Open the console</a>, if you are logged in to it already.</p>`
  }

  function secondFactor (challenge: string, methods: readonly string[], query: string, failure: HtmlValue): Html {
    const hidden = html`<input type="hidden" name="challenge" value="${challenge}">`
    const action = `${path}/login/second-factor${query}`
    return html`<h1 tabindex="-1">Confirm that it is you</h1>${failure}
${card(html`${methods.includes('totp') && html`<form method="post" action="${action}">${hidden}${field({
  name: 'code',
  label: 'Code of your authenticator app',
  required: true,
  attributes: { inputmode: 'numeric', autocomplete: 'one-time-code', class: 'code', autofocus: true },
})}${button('Log in', { wide: true })}</form>`}
${methods.includes('recovery-code') && html`<details><summary>Use a recovery code</summary>
<form method="post" action="${action}">${hidden}${field({
  name: 'recoveryCode', label: 'Recovery code', required: true, attributes: { autocomplete: 'off', class: 'code' },
})}${button('Log in', { kind: 'plain', wide: true })}</form></details>`}
${!methods.includes('totp') && html`<p>Your second factor is a passkey. Log in with it, under "Other ways to log in".</p>`}`)}
<p><a href="${path}/login${query}">Start again</a></p>`
  }
}

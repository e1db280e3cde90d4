import { html, type Html } from '../../../html.ts'
import { newPassword } from '../new-password.ts'
import { passwordInput } from '../password-input.ts'
import type { View } from '../view.ts'
import { accountPage, lead, menu, setting, settingLink } from './frame.ts'

/** Returns the page of what a user logs in with. */
export const showSecurity = accountPage('/account/security', (view: View): Html => {
  const { t, v } = view
  return html`${lead(t.securityHint)}
${required(view)}
<div class="card settings">
${setting('password', t.passwordTitle, {
  icon: 'password', hint: t.passwordHint, action: t.changeAction, attributes: { 'data-rest': true },
}, password(view))}
${v.canUsePasskeys && setting('passkeys', t.passkeysTitle, {
  icon: 'passkey', hint: t.passkeysHint, action: t.manageAction,
}, passkeys(view))}
${setting('totp', t.totpTitle, { icon: 'app', hint: t.totpHint, action: t.manageAction }, totp(view))}
${v.hasProviders && setting('identities', t.identitiesTitle, {
  icon: 'linked', hint: t.identitiesHint, action: t.manageAction, attributes: { 'data-rest': true },
}, identities(view))}
${settingLink('keys', t.keysTitle, {
  icon: 'key', href: `${v.root}account/keys`, hint: t.keysHint, action: t.manageAction,
})}
${settingLink('sessions', t.sessionsTitle, {
  icon: 'sessions', href: `${v.root}account/sessions`, hint: t.sessionsHint, action: t.manageAction,
})}
</div>`
})

const required = ({ t }: View): Html => html`<section class="card" aria-labelledby="required-title" id="required" hidden>
<h2 id="required-title">${t.factorTitle}</h2>
<p role="alert" class="alert error" id="required-alert"></p>
<p id="required-text"></p>
<p class="actions"><button type="button" id="required-confirm">${t.factorConfirm}</button>
<button type="button" class="plain" id="required-log-out">${t.logOut}</button></p>
</section>`

const password = ({ t, v }: View): Html => html`<p id="password-none" hidden>${t.passwordNone}${v.canVerify && html` <a
  href="${v.root}forgot-password">${t.passwordRequest}</a>`}</p>
<form id="password-form">
<p role="alert" class="alert error" id="password-alert"></p>
<p role="status" class="status"></p>
<input type="email" autocomplete="username" data-username hidden>
<div class="field"><label for="current-password">${t.currentPassword}</label>
${passwordInput(t, {
  id: 'current-password',
  name: 'currentPassword',
  autocomplete: 'current-password',
  'aria-describedby': 'current-password-error',
})}
<p class="field-error" role="alert" id="current-password-error"></p></div>
${newPassword(t, t.newPassword)}
<button>${t.changePasswordButton}</button>
</form>`

const passkeys = (view: View): Html => {
  const { t } = view
  return html`<p role="alert" class="alert error" id="passkeys-alert"></p>
<p role="status" class="status" id="passkeys-status" tabindex="-1"></p>
<p class="muted" id="passkeys-none" hidden>${t.passkeysNone}</p>
<ul class="list" id="passkeys" hidden></ul>
<template id="passkey">
<li>
<div class="row" data-show><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.passkeyCreated}: <span data-created></span> · ${t.lastUsed}: <span data-used></span></p></div>
${menu(view, html`<button type="button" data-rename>${t.passkeyRename}</button>
<button type="button" data-remove>${t.passkeyRemove}</button>`)}
</div>
<form hidden>
<p role="alert" class="alert error"></p>
<label>${t.passkeyName}</label>
<input name="name" autocomplete="off" required>
<p class="actions"><button>${t.saveButton}</button>
<button type="button" class="plain" data-cancel>${t.cancelButton}</button></p>
</form>
</li>
</template>
<p><button type="button" class="plain" id="passkey-add" hidden>${t.passkeyAdd}</button></p>`
}

const totp = ({ t }: View): Html => html`<p role="alert" class="alert error" id="totp-alert"></p>
<p role="status" class="status" id="totp-status" tabindex="-1"></p>
<div id="totp-none" hidden>
<p><button type="button" class="plain" id="totp-start">${t.totpSetUp}</button></p>
</div>
<form id="totp-set-up" hidden>
<p>${t.totpSteps}</p>
<div id="totp-qr-code" data-label="${t.totpQrCode}"></div>
<p>${t.totpSecret}<br><code class="copied" id="totp-secret"></code></p>
<p><a id="totp-uri">${t.totpOpen}</a></p>
<div class="field"><label for="totp-code">${t.code}</label>
<p class="hint" id="totp-code-hint">${t.totpConfirm}</p>
<input id="totp-code" name="code" class="code" inputmode="numeric" autocomplete="one-time-code"
  autocapitalize="none" spellcheck="false" required aria-describedby="totp-code-hint totp-code-alert">
<p role="alert" class="field-error" id="totp-code-alert"></p></div>
<p class="actions"><button>${t.totpButton}</button>
<button type="button" class="plain" id="totp-cancel">${t.cancelButton}</button></p>
</form>
<div id="recovery-codes" hidden>
<h3 id="recovery-title" tabindex="-1">${t.recoveryTitle}</h3>
<p>${t.recoveryOnce}</p>
<ol id="recovery-list"></ol>
<p role="status" class="status" id="recovery-status"></p>
<p class="actions"><button type="button" class="plain" id="recovery-copy">${t.recoveryCopy}</button>
<button type="button" class="plain" id="recovery-print">${t.recoveryPrint}</button>
<button type="button" id="recovery-done">${t.recoveryDone}</button></p>
</div>
<div id="totp-active" hidden>
<p>${t.totpSince}: <span id="totp-since"></span><br><span id="recovery-left"></span></p>
<p class="actions"><button type="button" class="plain" id="recovery-new">${t.recoveryNew}</button>
<button type="button" class="plain" id="totp-remove">${t.totpRemove}</button></p>
</div>`

const identities = ({ t, v }: View): Html => html`<p role="alert" class="alert error" id="identities-alert"></p>
<p role="status" class="status" id="identities-status" tabindex="-1"></p>
<p class="muted" id="identities-none" hidden>${t.identitiesNone}</p>
<ul class="list" id="identities" hidden></ul>
<template id="identity">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.identityAdded}: <span data-created></span></p></div>
<button type="button" class="plain small" data-remove>${t.identityRemove}</button></div></li>
</template>
${v.providerMarks}
<div class="actions" id="identities-add"></div>`

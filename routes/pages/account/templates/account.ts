import type { Texts } from '../../../../schema/translations/en.ts'
import { formMembers, hasLines, members, type Member } from '../../../../schema/users/members.ts'
import { attributes, html, type Html } from '../../html.ts'
import { newPassword } from './new-password.ts'
import type { View } from './view.ts'

/** Returns the account of a user, which a script fills. */
export function showAccount (view: View): Html {
  const { t, v } = view
  return html`<div class="page-title"><h1 tabindex="-1">${v.title}</h1></div>
<noscript><p class="alert error">${t.needsJavaScript}</p></noscript>
<p class="alert error late" id="scripts-missing">${t.scriptsMissing}</p>
<p id="loading" class="muted" hidden><span class="spinner"></span> ${t.loading}</p>
<p role="alert" class="alert error" id="failure" tabindex="-1"></p>
<div class="actions" id="retry" hidden><a class="button" href="${v.root}account">${t.tryAgain}</a></div>
<p role="status" class="alert warning" id="typed-kept"></p>
${v.hasConsole && html`<p id="to-console" hidden><a href="${v.root}console">${t.accountConsole}</a></p>`}
<div id="account" class="split" hidden>
<nav class="tabs side" aria-label="${t.sectionsTitle}" data-rest><ul>
<li><a href="#profile-title">${t.profileTitle}</a></li>
<li><a href="#password-title">${t.passwordTitle}</a></li>
<li><a href="#ways-title">${t.waysTitle}</a></li>
<li><a href="#sessions-title">${t.sessionsTitle}</a></li>
<li><a href="#keys-title">${t.keysTitle}</a></li>
${v.hasFiles && html`<li><a href="#files-title">${t.filesTitle}</a></li>`}
<li><a href="#data-title">${t.dataTitle}</a></li>
</ul></nav>
<div>
${requiredSection(view)}
${profileSection(view)}
${passwordSection(view)}
${waysSection(view)}
${sessionsSection(view)}
${keysSection(view)}
${v.hasFiles && filesSection(view)}
${dataSection(view)}
</div>
</div>
${stepUpDialog(view)}
${confirmationDialog(view)}
`
}

const requiredSection = ({ t }: View): Html => html`<section class="card" aria-labelledby="required-title" id="required" hidden>
<h2 id="required-title">${t.factorTitle}</h2>
<p role="alert" class="alert error" id="required-alert"></p>
<p id="required-text"></p>
<p class="actions"><button type="button" id="required-confirm">${t.factorConfirm}</button>
<button type="button" class="plain" id="required-log-out">${t.logOut}</button></p>
</section>`

const profileSection = ({ t, v }: View): Html => html`<section class="card" aria-labelledby="profile-title" data-rest>
<h2 id="profile-title" tabindex="-1">${t.profileTitle}</h2>
<form id="profile">
<p role="alert" class="alert error" id="profile-alert"></p>
<p role="status" class="status"></p>
${memberFields(t)}
<div class="field"><label for="email">${t.email}</label>
${v.canVerify && html`<p class="hint" id="email-hint">${t.emailHint}</p>`}
<input id="email" name="email" type="email" autocomplete="email" autocapitalize="none" spellcheck="false" required
  aria-describedby="${v.canVerify && html`email-hint `}email-error" data-kept data-member${v.canVerify && html` data-deferred`}>
<p class="field-error" role="alert" id="email-error"></p></div>
<button>${t.saveButton}</button>
</form>
${v.canVerify && html`<p role="alert" class="alert error" id="verification-alert"></p>
<p role="status" class="status" id="verification-status"></p>
<div id="unverified" class="alert warning" hidden><p>${t.unverified}</p><button type="button" class="plain small" id="verify">${t.verifySend}</button></div>`}
</section>`

// The members that users write, in the order of the table.
const memberFields = (t: Texts): Html[] => formMembers.flatMap((name) => {
  const { form, input }: Member = members[name]
  if (!form?.page) return []
  const { required, page: { label, autocomplete } } = form
  const ofField = attributes({
    id: name, name, autocomplete, required, 'aria-describedby': `${name}-error`, 'data-kept': true, 'data-member': true,
  })
  return html`<div class="field"><label for="${name}">${t[label]}</label>
${hasLines(input) ? html`<textarea${ofField}></textarea>` : html`<input${ofField}>`}
<p class="field-error" role="alert" id="${name}-error"></p></div>`
})

const passwordSection = ({ t, v }: View): Html => html`<section class="card" aria-labelledby="password-title" data-rest>
<h2 id="password-title" tabindex="-1">${t.passwordTitle}</h2>
<p id="password-none" hidden>${t.passwordNone}${v.canVerify && html` <a
  href="${v.root}forgot-password">${t.passwordRequest}</a>`}</p>
<form id="password-form">
<p role="alert" class="alert error" id="password-alert"></p>
<p role="status" class="status"></p>
<input type="email" autocomplete="username" data-username hidden>
<div class="field"><label for="current-password">${t.currentPassword}</label>
<input id="current-password" name="currentPassword" type="password" autocomplete="current-password" required
  aria-describedby="current-password-error">
<p class="field-error" role="alert" id="current-password-error"></p></div>
${newPassword(t, t.newPassword)}
<button>${t.changePasswordButton}</button>
</form>
</section>`

const waysSection = ({ t, v }: View): Html => html`<section class="card" aria-labelledby="ways-title">
<h2 id="ways-title" tabindex="-1">${t.waysTitle}</h2>
${v.canUsePasskeys && html`<div id="passkeys-section">
<h3>${t.passkeysTitle}</h3>
<p class="hint">${t.passkeysHint}</p>
<p role="alert" class="alert error" id="passkeys-alert"></p>
<p role="status" class="status" id="passkeys-status" tabindex="-1"></p>
<p id="passkeys-none" hidden>${t.passkeysNone}</p>
<ul class="list" id="passkeys" hidden></ul>
<template id="passkey">
<li>
<div class="row" data-show><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.passkeyCreated}: <span data-created></span> · ${t.lastUsed}: <span data-used></span></p></div>
<div class="actions"><button type="button" class="plain small" data-rename>${t.passkeyRename}</button>
<button type="button" class="plain small" data-remove>${t.passkeyRemove}</button></div>
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
<p><button type="button" class="plain" id="passkey-add" hidden>${t.passkeyAdd}</button></p>
</div>`}
${v.hasProviders && html`<div id="identities-section">
<h3>${t.identitiesTitle}</h3>
<p class="hint">${t.identitiesHint}</p>
<p role="alert" class="alert error" id="identities-alert"></p>
<p role="status" class="status" id="identities-status" tabindex="-1"></p>
<p id="identities-none" hidden>${t.identitiesNone}</p>
<ul class="list" id="identities" hidden></ul>
<template id="identity">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.identityAdded}: <span data-created></span></p></div>
<button type="button" class="plain small" data-remove>${t.identityRemove}</button></div></li>
</template>
<p class="actions" id="identities-add"></p>
</div>`}
<h3 id="totp-title" tabindex="-1">${t.totpTitle}</h3>
<p class="hint">${t.totpHint}</p>
<p role="alert" class="alert error" id="totp-alert"></p>
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
<h4 id="recovery-title" tabindex="-1">${t.recoveryTitle}</h4>
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
</div>
</section>`

const sessionsSection = ({ t }: View): Html => html`<section class="card" aria-labelledby="sessions-title" data-rest>
<h2 id="sessions-title" tabindex="-1">${t.sessionsTitle}</h2>
<p class="hint">${t.sessionsHint}</p>
<p role="alert" class="alert error" id="sessions-alert"></p>
<p role="status" class="status" id="sessions-status"></p>
<ul class="list" id="sessions"></ul>
<template id="session">
<li><div class="row"><div class="main">
<p class="title"><span class="device" data-device></span> <span class="badge success" data-current>${t.thisSession}</span></p>
<p class="hint"><span data-address></span> · <span data-used></span></p></div>
<button type="button" class="plain small">${t.endSession}</button></div></li>
</template>
<div class="actions"><button type="button" class="plain" id="end-others" hidden>${t.endOthers}</button>
<button type="button" class="plain" id="log-out">${t.logOut}</button>
<button type="button" class="plain" id="log-out-everywhere">${t.logOutEverywhere}</button></div>
</section>`

const keysSection = ({ t, v }: View): Html => html`<section class="card" aria-labelledby="keys-title" data-rest>
<h2 id="keys-title" tabindex="-1">${t.keysTitle}</h2>
<p class="hint">${t.keysHint}</p>
<p role="alert" class="alert error" id="keys-alert"></p>
<p role="status" class="status" id="keys-status" tabindex="-1"></p>
<p id="keys-none" hidden>${t.keysNone}</p>
<ul class="list" id="keys" hidden></ul>
<template id="key">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.keyCreated}: <span data-created></span> · ${t.lastUsed}: <span data-used></span> · ${t.keyExpires}: <span
  data-expires></span><span data-actions></span></p></div>
<button type="button" class="plain small" data-delete>${t.keyDelete}</button></div></li>
</template>
<p id="key-start"><button type="button" class="plain" id="key-new">${t.keyNew}</button></p>
<form id="key-form" data-actions="${v.keyActions}" hidden>
<p role="alert" class="alert error" id="key-alert"></p>
<div class="field"><label for="key-name">${t.keyName}</label>
<input id="key-name" name="name" autocomplete="off" required aria-describedby="key-name-error">
<p class="field-error" role="alert" id="key-name-error"></p></div>
<div class="field"><label for="key-expiry">${t.keyExpires}</label>
<select id="key-expiry" name="days" autocomplete="off">
<option value="30">${t.keyMonth}</option>
<option value="90" selected>${t.keyQuarter}</option>
<option value="365">${t.keyYear}</option>
<option value="">${t.keyNever}</option>
</select></div>
<details>
<summary>${t.keyActionsTitle}</summary>
<fieldset id="key-actions" aria-describedby="key-actions-hint">
<legend class="hint" id="key-actions-hint">${t.keyActionsHint}</legend>
</fieldset>
</details>
<p class="actions"><button>${t.keyCreate}</button>
<button type="button" class="plain" id="key-cancel">${t.cancelButton}</button></p>
</form>
<div id="key-shown" hidden>
<h3 id="key-title" tabindex="-1">${t.keyShown}</h3>
<p>${t.keyOnce}</p>
<p><code class="copied" id="key-text"></code></p>
<p role="status" class="status" id="key-copied"></p>
<p class="actions"><button type="button" class="plain" id="key-copy">${t.recoveryCopy}</button>
<button type="button" id="key-done">${t.keyDone}</button></p>
</div>
</section>`

const filesSection = ({ t }: View): Html => html`<section class="card" aria-labelledby="files-title" data-rest id="files-section">
<h2 id="files-title" tabindex="-1">${t.filesTitle}</h2>
<p class="hint">${t.filesHint}</p>
<p role="alert" class="alert error" id="files-alert"></p>
<p role="status" class="status" id="files-status" tabindex="-1"></p>
<p id="files-none" hidden>${t.filesNone}</p>
<ul class="list" id="files" hidden></ul>
<template id="file">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint"><span data-visibility></span> · <span data-size></span> · <time></time></p></div>
<div class="actions"><button type="button" class="plain small" data-toggle></button>
<button type="button" class="plain small" data-share aria-expanded="false">${t.fileLinks}</button>
<button type="button" class="plain small" data-delete>${t.fileDelete}</button></div></div>
<div data-links hidden>
<p data-links-none>${t.linksNone}</p>
<ul class="list"></ul>
<form>
<p role="alert" class="alert error"></p>
<div class="field"><label data-for="name">${t.linkName}</label>
<input name="name" autocomplete="off"></div>
<div class="field"><label data-for="seconds">${t.linkDuration}</label>
<select name="seconds" autocomplete="off"><option value="3600">${t.linkHour}</option>
<option value="86400">${t.linkDay}</option><option value="604800">${t.linkWeek}</option></select></div>
<button>${t.linkCreate}</button>
</form>
<div data-created hidden>
<p role="status" class="status" tabindex="-1">${t.linkOnce}</p>
<p><code class="copied"></code></p>
</div>
</div>
</li>
</template>
<template id="file-link">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.linkUntil}: <time></time><span data-key></span></p></div>
<button type="button" class="plain small">${t.linkRevoke}</button></div></li>
</template>
<p><button type="button" class="plain" id="files-more" hidden>${t.filesMore}</button></p>
</section>`

const dataSection = ({ t }: View): Html => html`<section class="card" aria-labelledby="data-title" data-rest>
<h2 id="data-title" tabindex="-1">${t.dataTitle}</h2>
<p role="alert" class="alert error" id="data-alert"></p>
<p role="status" class="status" id="data-status" tabindex="-1"></p>
<h3>${t.exportTitle}</h3>
<p class="hint">${t.exportHint}</p>
<div class="actions"><button type="button" class="plain" id="export">${t.exportButton}</button></div>
<h3>${t.deleteTitle}</h3>
<p class="hint">${t.deleteHint}</p>
<div class="actions"><button type="button" class="plain danger" id="delete-account">${t.deleteButton}</button></div>
</section>`

const stepUpDialog = ({ t, v }: View): Html => html`<dialog id="step-up" aria-labelledby="step-up-title">
<h2 id="step-up-title">${t.stepUpTitle}</h2>
<p>${t.stepUpHint}</p>
<form id="step-up-password-form" data-factor="password">
<input type="email" autocomplete="username" data-username hidden>
<div class="field"><label for="step-up-password">${t.password}</label>
<input id="step-up-password" name="password" type="password" autocomplete="current-password" required
  aria-describedby="step-up-password-alert">
<p role="alert" class="field-error" id="step-up-password-alert"></p></div>
<button>${t.stepUpButton}</button>
</form>
${v.loginMailUrl && html`<div data-factor="mail">
<p role="alert" class="alert error" id="step-up-mail-alert"></p>
<p><button type="button" class="plain" id="step-up-mail">${t.stepUpMail}</button></p>
<form id="step-up-mail-form" hidden>
<div class="field"><label for="step-up-mail-code">${t.mailCode}</label>
<p class="hint" id="step-up-mail-hint">${t.stepUpMailSent}</p>
<input id="step-up-mail-code" name="code" class="code" inputmode="numeric" autocomplete="one-time-code"
  autocapitalize="none" spellcheck="false" required
  aria-describedby="step-up-mail-hint step-up-mail-code-alert">
<p role="alert" class="field-error" id="step-up-mail-code-alert"></p></div>
<button>${t.stepUpButton}</button>
</form>
</div>`}
<p data-factor="none">${t.stepUpNone} <a href="${v.root}login">${t.logIn}</a></p>
<form id="step-up-code-form" data-factor="code">
<div class="field"><label for="step-up-code">${t.code}</label>
<p class="hint" id="step-up-code-hint">${t.codeHint}</p>
<input id="step-up-code" name="code" class="code" inputmode="numeric" autocomplete="one-time-code"
  autocapitalize="none" spellcheck="false" required
  aria-describedby="step-up-code-hint step-up-code-alert">
<p role="alert" class="field-error" id="step-up-code-alert"></p></div>
<button>${t.stepUpButton}</button>
</form>
<details data-factor="code">
<summary>${t.recoveryUse}</summary>
<form id="step-up-recovery-form">
<div class="field"><label for="step-up-recovery">${t.recoveryCode}</label>
<p class="hint" id="step-up-recovery-hint">${t.recoveryHint}</p>
<input id="step-up-recovery" name="recoveryCode" class="code" autocomplete="off" autocapitalize="none"
  spellcheck="false" required aria-describedby="step-up-recovery-hint step-up-recovery-alert">
<p role="alert" class="field-error" id="step-up-recovery-alert"></p></div>
<button class="plain">${t.stepUpButton}</button>
</form>
</details>
${v.hasProviders && html`<p class="actions" id="step-up-providers"></p>
`}<p role="alert" class="alert error" id="step-up-alert"></p>
<p class="actions"><button type="button" class="plain" id="step-up-passkey" hidden>${t.passkeyUse}</button>
<button type="button" class="plain" id="step-up-cancel">${t.cancelButton}</button></p>
</dialog>`

const confirmationDialog = ({ t }: View): Html => html`<dialog id="confirmation" aria-labelledby="confirmation-question">
<form method="dialog">
<p id="confirmation-question"></p>
<label class="check" id="confirmation-option" hidden><input type="checkbox" autocomplete="off"> <span></span></label>
<p class="actions"><button value="yes" class="danger" id="confirmation-yes"></button>
<button value="" class="plain" autofocus>${t.cancelButton}</button></p>
</form>
</dialog>`

import { html, type Html } from '../../../html.ts'
import { passwordInput } from '../password-input.ts'
import type { View } from '../view.ts'

/** Returns the dialog that authenticates the user once more. */
export const stepUpDialog = ({ t, v }: View): Html => html`<dialog id="step-up" aria-labelledby="step-up-title">
<h2 id="step-up-title">${t.stepUpTitle}</h2>
<p>${t.stepUpHint}</p>
<form id="step-up-password-form" data-factor="password">
<input type="email" autocomplete="username" data-username hidden>
<div class="field"><label for="step-up-password">${t.password}</label>
${passwordInput(t, {
  id: 'step-up-password',
  name: 'password',
  autocomplete: 'current-password',
  'aria-describedby': 'step-up-password-alert',
})}
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

/** Returns the dialog that asks whether something shall be done. */
export const confirmationDialog = ({ t }: View): Html => html`<dialog id="confirmation" aria-labelledby="confirmation-question">
<form method="dialog">
<p class="question" id="confirmation-question"></p>
<label class="check" id="confirmation-option" hidden><input type="checkbox" autocomplete="off"> <span></span></label>
<p class="actions end"><button value="" class="plain" autofocus>${t.cancelButton}</button>
<button value="yes" class="danger" id="confirmation-yes"></button></p>
</form>
</dialog>`

/**
 * Returns the dialog that deletes something after its name was typed. A script says its name, and enables the button
 * once what is typed is that.
 * @param title what its button says as well
 * @param label of the field
 * @param content what is lost
 */
export const deletionDialog = (
  { t }: View, { title, label, button = title }: { title: string, label: string, button?: string }, content: Html
): Html => html`<dialog id="deletion" aria-labelledby="deletion-title">
<h2 id="deletion-title" tabindex="-1">${title}</h2>
<p class="account-of"><bdi class="strong" id="deletion-name"></bdi></p>
${content}
<form id="deletion-form">
<div class="field"><label for="deletion-typed">${label}</label>
<input id="deletion-typed" name="typed" autocomplete="off" autocapitalize="none" spellcheck="false" required
  aria-describedby="deletion-name deletion-alert">
<p role="alert" class="field-error" id="deletion-alert"></p></div>
<div class="actions end"><button type="button" class="plain" id="deletion-cancel">${t.cancelButton}</button>
<button class="danger" disabled>${button}</button></div>
</form>
</dialog>`

import { html, type Html } from '../../html.ts'
import type { View } from './view.ts'

/** Returns the form to ask for a link to set a password. */
export const showForgotPassword = ({ t, v }: View): Html => html`<p role="status" class="status" tabindex="-1">${v.notice}</p>
${!v.notice && html`<form method="post" data-sends="auth/password-reset" data-sent="${t.forgotSentTo}">
<p>${t.forgotHint}</p>
<p role="alert" class="alert error" id="alert">${v.alert}</p>
<div class="field"><label for="email">${t.email}</label>
<input id="email" name="email" type="email" value="${v.typedEmail}" autocomplete="username" autocapitalize="none"
  spellcheck="false" required autofocus aria-describedby="email-error"${v.emailError && html` aria-invalid="true"`}>
<p class="field-error" role="alert" id="email-error">${v.emailError}</p></div>
<button class="wide">${t.forgotButton}</button>
</form>
<div class="actions" id="sent" hidden><button type="button" class="plain" id="send-again">${t.sendAgain}</button>
<button type="button" class="plain" id="wrong-address">${t.wrongAddress}</button></div>`}
${v.notice && html`<p><a href="forgot-password${v.returnQuery}">${t.wrongAddress} ${t.sendAgain}</a></p>`}
<p class="other"><a href="${v.loginUrl}">${t.backToLogin}</a></p>
`

import { html, type Html } from '../../html.ts'
import { newPassword } from './new-password.ts'
import type { View } from './view.ts'

/** Returns the form to sign up. */
export const showSignUp = ({ t, v }: View): Html => html`${!v.notice && html`<p class="lead">${t.signUpHint}</p>`}
<p role="status" class="status" tabindex="-1">${v.notice}</p>
${!v.notice && html`<form method="post" data-sends="auth/sign-up" data-sent="${t.signUpSentTo}">
<p role="alert" class="alert error" id="alert">${v.alert}</p>
<div class="field"><label for="name">${t.name}</label>
<input id="name" name="name" value="${v.typedName}" autocomplete="name" required${!v.hasFieldError && html` autofocus`}${v.nameError && html` autofocus aria-invalid="true"`}
  aria-describedby="name-error">
<p class="field-error" role="alert" id="name-error">${v.nameError}</p></div>
<div class="field"><label for="email">${t.email}</label>
<input id="email" name="email" type="email" value="${v.typedEmail}" autocomplete="username" autocapitalize="none"
  spellcheck="false" required${v.emailError && html`${!v.nameError && html` autofocus`} aria-invalid="true"`}
  aria-describedby="email-error">
<p class="field-error" role="alert" id="email-error">${v.emailError}</p></div>
${newPassword(t, t.password, {
  error: v.passwordError, hasFocus: Boolean(v.passwordError && !v.nameError && !v.emailError),
})}
${v.signUpFields}
<button class="wide">${t.signUpButton}</button>
</form>
<div class="actions" id="sent" hidden><button type="button" class="plain" id="send-again">${t.sendAgain}</button>
<button type="button" class="plain" id="wrong-address">${t.wrongAddress}</button></div>
${v.providers && html`<div id="other-ways"><p class="divider">${t.orWith}</p>
<div class="ways">${v.providers}</div></div>`}`}
${v.notice && html`<p><a href="${v.signUpPage}">${t.wrongAddress} ${t.sendAgain}</a></p>`}
<p class="other">${t.signUpHasAccount} <a href="${v.loginUrl}">${t.logIn}</a></p>
`

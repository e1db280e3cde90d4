import { html, type Html } from '../../html.ts'
import type { View } from './view.ts'

/** Returns the form to sign up. */
export const showSignUp = ({ t, v }: View): Html => html`<p role="status" class="status" tabindex="-1">${v.notice}</p>
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
<div class="field"><label for="password">${t.password}</label>
<p class="hint" id="rules">${t.passwordRules}</p>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="8" required${v.passwordError && html`${!v.nameError && !v.emailError && html` autofocus`} aria-invalid="true"`}
  aria-describedby="rules password-error">
<p class="field-error" role="alert" id="password-error">${v.passwordError}</p>
<label class="check" hidden><input type="checkbox" data-shows-passwords autocomplete="off"> ${t.showPassword}</label></div>
<button class="wide">${t.signUpButton}</button>
<p class="hint after">${t.signUpHint}</p>
</form>
<div class="actions" id="sent" hidden><button type="button" class="plain" id="send-again">${t.sendAgain}</button>
<button type="button" class="plain" id="wrong-address">${t.wrongAddress}</button></div>
<div id="other-ways">${v.providers}</div>`}
${v.notice && html`<p><a href="${v.signUpPage}">${t.wrongAddress} ${t.sendAgain}</a></p>`}
<p><a href="${v.loginUrl}">${t.signUpHasAccount}</a></p>
`

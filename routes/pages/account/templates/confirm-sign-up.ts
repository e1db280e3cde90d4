import { html, type Html } from '../../html.ts'
import { accountOf } from './account-of.ts'
import { newPassword } from './new-password.ts'
import type { View } from './view.ts'

/** Returns the form to confirm a sign-up by a link. */
export const showConfirmSignUp = ({ t }: View): Html => html`${accountOf(t)}
<p data-own>${t.confirmSignUpOwn}</p>
<fieldset data-foreign hidden disabled>
<p>${t.confirmSignUpForeign}</p>
<input type="email" autocomplete="username" data-username hidden>
<div class="field"><label for="name">${t.name}</label>
<input id="name" name="name" autocomplete="name" required aria-describedby="name-error">
<p class="field-error" role="alert" id="name-error"></p></div>
${newPassword(t, t.password)}
</fieldset>
<button class="wide">${t.signUpButton}</button>
`

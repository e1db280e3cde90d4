import { html, type Html } from '../../html.ts'
import { newPassword } from './new-password.ts'
import type { View } from './view.ts'

/** Returns the form to verify an address by a link. */
export const showVerifyEmail = ({ t, v }: View): Html => html`<p class="lead">${t.verifyHint}</p>
<fieldset data-foreign hidden disabled>
<p>${t.verifyForeign}</p>
<input type="email" autocomplete="username" data-username hidden>
${newPassword(t, t.newPassword)}
</fieldset>
<div data-login hidden>
<p class="alert">${t.verifyLogIn}</p>
<div class="actions"><a class="button" href="${v.root}${v.loginUrl}">${t.logIn}</a></div>
</div>
<button class="wide" data-submit>${t.verifyButton}</button>
`

import { html, type Html } from '../../html.ts'
import { newPassword } from './new-password.ts'
import type { View } from './view.ts'

/** Returns the form to set a password by a link. */
export const showSetPassword = ({ t }: View): Html => html`<input type="email" autocomplete="username" data-username hidden>
${newPassword(t, t.newPassword)}
<fieldset class="field" data-ways hidden data-passkey="${t.passkeysTitle}" data-totp="${t.totpTitle}" data-identity="${t.identitiesTitle}"
  data-api-key="${t.keysTitle}">
<p data-keeps hidden>${t.resetRemoves}</p>
<p data-removes hidden>${t.resetRemovesAll}</p>
<ul class="plain" data-list></ul>
</fieldset>
<button class="wide">${t.setPasswordButton}</button>
`

import { html, type Html } from '../../html.ts'
import { accountOf } from './account-of.ts'
import { newPassword } from './new-password.ts'
import type { View } from './view.ts'

/**
 * Returns the form to set a password by a link. A script adds whose account it is, who has invited if anybody has, and
 * what the reset removes.
 */
export const showSetPassword = ({ t, v, f }: View): Html => html`<div data-invitation hidden
  data-title="${f(t.inviteTitle, { product: v.productName })}" data-by="${f(t.invitedBy, { product: v.productName })}">
<p class="lead" data-inviter>${f(t.invited, { product: v.productName })}</p>
</div>
<p class="lead" data-reset>${f(t.passwordOf, { product: v.productName })}</p>
${accountOf(t)}
<input type="email" autocomplete="username" data-username hidden>
${newPassword(t, t.newPassword)}
<fieldset class="field" data-ways hidden data-passkey="${t.passkeysTitle}" data-totp="${t.totpTitle}" data-identity="${t.identitiesTitle}"
  data-api-key="${t.keysTitle}">
<p data-keeps hidden>${t.resetRemoves}</p>
<p data-removes hidden>${t.resetRemovesAll}</p>
<ul class="plain" data-list></ul>
</fieldset>
<button class="wide">${t.setPasswordButton}</button>
<p class="hint after" data-reset>${t.resetEnds}</p>
`

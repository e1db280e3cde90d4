import { html, type Html } from '../../html.ts'
import type { Texts } from '../../../../schema/translations/en.ts'

/** Returns the field for a new password, which its owner may look at. */
export const newPassword = (t: Texts, label: string): Html => html`<div class="field"><label for="password">${label}</label>
<p class="hint" id="rules">${t.passwordRules}</p>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="8" required
  aria-describedby="rules password-error">
<p class="field-error" role="alert" id="password-error"></p>
<label class="check"><input type="checkbox" data-shows-passwords autocomplete="off"> ${t.showPassword}</label></div>`

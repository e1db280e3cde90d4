import { html, type Html } from '../../html.ts'
import type { Texts } from '../../../../schema/translations/en.ts'
import { passwordInput } from './password-input.ts'

/**
 * Returns the field for a new password, which its owner may look at, with how strong it is. Scripts show both.
 * @param error what is wrong with what was sent
 * @param hasFocus whether the field has the focus when the page opens
 * @param optional what the owner does without a password, if there need not be one
 */
export const newPassword = (
  t: Texts, label: string,
  { error, hasFocus, optional }: { error?: string | undefined, hasFocus?: boolean, optional?: string | undefined } = {}
): Html => html`<div class="field"><label for="password">${label}</label>
${passwordInput(t, {
  id: 'password',
  name: 'password',
  'data-new-password': true,
  autocomplete: 'new-password',
  minlength: 8,
  required: optional === undefined,
  autofocus: hasFocus,
  'aria-invalid': error ? 'true' : undefined,
  'aria-describedby': 'rules password-error',
})}
<p class="hint" id="rules">${t.passwordRules}${optional !== undefined && ` ${optional}`}</p>
<div class="strength" id="strength" hidden><meter min="0" max="4" low="2" high="3" optimum="4" value="0" aria-label="${t.strengthTitle}"></meter>
<p class="hint" id="strength-text" aria-live="polite"></p></div>
<p class="field-error" role="alert" id="password-error">${error}</p></div>`

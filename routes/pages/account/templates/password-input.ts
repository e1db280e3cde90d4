import type { Texts } from '../../../../schema/translations/en.ts'
import { attributes, html, type Html } from '../../html.ts'
import { icon } from '../icons.ts'

/** Returns the field for a password, at whose end is a button that shows it. A script shows the button. */
export const passwordInput = (t: Texts, given: Parameters<typeof attributes>[0]): Html => html`<div class="secret">
<input type="password"${attributes({ required: true, ...given })}>
<button type="button" class="reveal" data-shows-password aria-pressed="false" aria-label="${t.showPassword}" hidden>${icon('eye')}</button></div>`

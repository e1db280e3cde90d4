import { html, type Html } from '../../html.ts'
import type { Texts } from '../../../../schema/translations/en.ts'

/** Returns the place where a page says whose account it is about, once that is known. */
export const accountOf = ({ account }: Texts, email = ''): Html => html`<p class="account-of" data-account${email === '' && html` hidden`}>
<span class="hint">${account}</span> <bdi>${email}</bdi></p>`

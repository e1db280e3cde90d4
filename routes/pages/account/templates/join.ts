import { attributes, html, type Html } from '../../html.ts'
import { newPassword } from './new-password.ts'
import type { View } from './view.ts'

/**
 * Returns the form to accept an invitation to an organisation. A script adds what the invitation says, and shows what
 * the visitor needs to accept it: the user with its address, another user, nobody, or nobody without an account.
 */
export const showJoin = ({ t, v }: View): Html => html`<div id="invitation" hidden>
<p class="lead" id="inviter"></p>
<dl class="facts"><dt>${t.email}</dt><dd><bdi id="invited-email"></bdi></dd>
<dt>${t.organizationRole}</dt><dd><bdi id="invited-role"></bdi></dd></dl>
</div>
<p id="joins-as" data-visitor="own" hidden></p>
<p class="alert warning" id="is-other" data-visitor="other" hidden></p>
<p class="alert" data-visitor="account" hidden>${t.joinLogIn}</p>
<fieldset data-visitor="newcomer"${attributes({ 'data-by-mail': v.loginMailUrl && `${v.root}${v.loginMailUrl}` })} hidden disabled>
<p>${t.joinNewcomer}</p>
<div class="field"><label for="name">${t.name}</label>
<input id="name" name="name" autocomplete="name" required aria-describedby="name-error">
<p class="field-error" role="alert" id="name-error"></p></div>
<input type="email" autocomplete="username" data-username hidden>
${newPassword(t, t.password, { optional: v.loginMailUrl === undefined ? undefined : t.joinByMail })}
</fieldset>
<button class="wide" data-visitor="own newcomer" hidden>${t.joinButton}</button>
${v.providers && html`<div data-visitor="newcomer" hidden>${v.providers}</div>`}
<button type="button" class="wide" id="log-out" data-visitor="other" hidden>${t.joinLogOut}</button>
<a class="button wide" id="log-in" data-visitor="account" hidden>${t.logIn}</a>
`
